// Wall-clock and elapsed time.
#pragma once

#include <chrono>

namespace yolohpc::base {

/// Seconds since some fixed moment, never running backwards.
inline double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds since 1970 (UTC), for logs that people compare with other logs.
inline double wall_clock_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Measures from its construction or the last restart.
class Stopwatch {
 public:
  double elapsed_s() const { return monotonic_s() - start_s_; }
  /// Elapsed seconds; starts again from zero.
  double restart_s() {
    double const now_s = monotonic_s();
    double const elapsed = now_s - start_s_;
    start_s_ = now_s;
    return elapsed;
  }

 private:
  double start_s_ = monotonic_s();
};

}  // namespace yolohpc::base
