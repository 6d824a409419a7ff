// Why a run should stop before its end: signals and the wall-clock limit.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace yolohpc::train {

/// Turns SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 into a wish to stop, from construction to
/// destruction.
///
/// A handler may only set a flag, so the flag is the one piece of global state here; one object at
/// a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(StopSignals const&) = delete;
  StopSignals& operator=(StopSignals const&) = delete;

  /// The last signal that arrived, 0 when none did.
  int received() const;
};

/// When the job will be killed, in base::wall_clock_s().
///
/// `--walltime` as seconds, MM:SS, HH:MM:SS or D-HH:MM:SS counts from `process_start_s`. `auto`
/// asks, in this order, SLURM_JOB_END_TIME (seconds since 1970), SLURM_JOB_START_TIME or
/// `process_start_s` plus PBS_WALLTIME (seconds). Nothing: no limit is known. \throws Error (usage)
/// the text is no duration
std::optional<double> walltime_end_s(std::string const& walltime,
                                     std::map<std::string, std::string> const& environment,
                                     double process_start_s);

/// Says on one rank whether to stop, and why.
class StopWatch {
 public:
  struct Settings {
    std::optional<double> end_s;  ///< wall clock
    double margin_s = 120;        ///< stop this long before it
  };
  StopWatch(Settings settings, StopSignals const& signals)
      : settings_(settings), signals_(signals) {}

  /// "" to go on, else the reason in words.
  std::string reason() const;
  /// The wall-clock limit is nearer than the margin plus what a step and a save have taken at most.
  void note_duration(double seconds) { longest_s_ = seconds > longest_s_ ? seconds : longest_s_; }

 private:
  Settings settings_;
  StopSignals const& signals_;
  double longest_s_ = 0;
};

}  // namespace yolohpc::train
