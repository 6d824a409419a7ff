// The progress line: a bar on a terminal, one line per interval in a batch log.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "yolohpc/base/clock.hpp"

namespace yolohpc::monitor {

/// What the line says.
struct ProgressState {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t epochs = 0;
  std::int64_t step = 0;                                    ///< in this epoch, done so far
  std::int64_t steps = 0;                                   ///< in this epoch
  std::vector<std::pair<std::string, double>> losses = {};  ///< name and mean since the epoch began
  double images_per_s = 0;
  double data_wait = 0;  ///< 0 to 1
  double eta_s = 0;      ///< to the end of the run; negative: unknown
};

/// `epoch 3/100  step 12/57  box 1.23 cls 2.34 dfl 1.10  123 img/s  data wait 3 %  ETA 1:02:03`
std::string progress_text(ProgressState const& state);
/// The same with a bar, cut to `columns`.
std::string progress_bar(ProgressState const& state, int columns);
/// `42 s`, `3:07`, `1:02:03`, `2 d 03:04`; `-` when unknown.
std::string duration_text(double seconds);

/// Time to the end of the run from the steps done in this process.
/// \param seconds_per_step        mean of this process
/// \param validation_s            of the last epoch that had one, for each epoch to come
double estimate_remaining_s(ProgressState const& state, double seconds_per_step,
                            double validation_s);

/// Prints the line on rank 0. Other ranks construct it with is_root false and it stays silent.
class Progress {
 public:
  enum class Style { automatic, bar, lines, silent };
  using Clock = double (*)();
  struct Settings {
    bool is_root = true;
    Style style = Style::automatic;  ///< a bar when `out` is a terminal, lines otherwise
    double interval_s = 10;          ///< between two lines; a bar is redrawn 5 times a second
    std::FILE* out = stdout;
    Clock clock = base::monotonic_s;
  };
  explicit Progress(Settings settings);

  /// True when update() would print: ask before gathering numbers that cost something.
  bool is_due() const;
  /// Prints when it is due, and always at the last step of an epoch.
  void update(ProgressState const& state);
  /// Prints a full line of its own (the summary of an epoch), first removing the bar.
  void line(std::string const& text);

 private:
  void print(std::string const& text);

  Settings settings_;
  double last_s_;
  bool has_bar_ = false;
};

}  // namespace yolohpc::monitor
