// log.jsonl: one JSON object per line and event.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace yolohpc::monitor {

/// Where in the run something happened. Negative: before the first step.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< optimiser updates done
};

/// A value of an event's free field. A double that is not finite is written as null.
using FieldValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                std::vector<double>>;
using Fields = std::vector<std::pair<std::string, FieldValue>>;

/// Appends events to a file. Thread-safe; each event is one write of one line, so a reader (or a
/// crash) sees whole lines up to the last one.
class EventLog {
 public:
  struct Settings {
    std::filesystem::path file = {};
    int rank = 0;
    /// On resume: lines with a larger step are cut, as is a last line without its end. Empty: a new
    /// log.
    std::optional<std::int64_t> resumed_step = {};
  };
  /// Rank 0 opens the file; on other ranks nothing is opened and write() does nothing.
  /// \throws Error  the file cannot be opened or cut
  explicit EventLog(Settings settings);

  /// Appends {"event", "time" (seconds since 1970), "rank", "step", "epoch", fields...}.
  ///
  /// A full disk does not end a training run: the first failure is kept for failure(), later events
  /// are tried again.
  void write(std::string const& event, Position position, Fields const& fields = {});
  /// Text of the first failed write, or empty.
  std::string failure() const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Settings settings_;
  std::unique_ptr<std::FILE, Close> file_;
  mutable std::mutex mutex_;
  std::string failure_;
};

/// The line that write() appends, without the line end. `fields` must not repeat a fixed name.
std::string event_line(std::string const& event, double time_s, int rank, Position position,
                       Fields const& fields);

}  // namespace yolohpc::monitor
