// Named phase timers with interval and cumulative times, and the memory of this process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "yolohpc/base/clock.hpp"

namespace yolohpc::monitor {

/// The parts of a training step, and validation.
enum class Phase : std::size_t {
  data_wait,
  forward,
  backward,
  comm_wait,
  optimizer,
  validation,
  other
};
inline constexpr std::size_t phase_count = 7;
/// `data_wait`, `forward`, ...
std::string_view phase_name(Phase phase);

/// Seconds by phase, and what they add up over.
struct PhaseTimes {
  std::array<double, phase_count> seconds{};
  std::int64_t steps = 0;
  std::int64_t images = 0;
  double elapsed_s = 0;  ///< wall time, phases and what lies between them

  double operator[](Phase phase) const { return seconds[static_cast<std::size_t>(phase)]; }
  /// Part of the elapsed time, 0 to 1; 0 when nothing elapsed.
  double share(Phase phase) const;
  double images_per_s() const;
  double step_ms() const;
  PhaseTimes& operator+=(PhaseTimes const& more);
};

/// Adds up the phases of one rank. Not thread-safe: it belongs to the training thread.
///
/// Interval and total are kept apart: take_interval() empties the one and leaves the other.
class PhaseTimers {
 public:
  /// Seconds from any fixed moment; a test gives its own clock.
  using Clock = double (*)();
  explicit PhaseTimers(Clock clock = base::monotonic_s);

  /// Counts time for a phase from its construction to its end. Scopes do not nest.
  class Scope {
   public:
    Scope(PhaseTimers& timers, Phase phase);
    Scope(Scope const&) = delete;
    Scope& operator=(Scope const&) = delete;
    ~Scope();

   private:
    PhaseTimers& timers_;
    Phase phase_;
    double start_s_;
  };
  [[nodiscard]] Scope measure(Phase phase) { return Scope(*this, phase); }

  /// Time that was measured elsewhere (a communication thread).
  void add(Phase phase, double seconds);
  /// One optimiser step over `images` images (of all ranks) is done.
  void count_step(std::int64_t images);

  /// Since the last take_interval(), and from then on anew.
  PhaseTimes take_interval();
  /// Since construction or restart().
  PhaseTimes total() const;
  /// Sets interval and total to zero (at the start of an epoch).
  void restart();

 private:
  Clock clock_;
  double total_start_s_;
  double interval_start_s_;
  PhaseTimes total_;
  PhaseTimes interval_;
};

/// Largest and present resident set of this process, MiB. Source: getrusage, /proc/self/statm.
double peak_memory_mib();
double resident_memory_mib();

}  // namespace yolohpc::monitor
