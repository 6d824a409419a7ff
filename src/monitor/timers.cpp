#include "yolohpc/monitor/timers.hpp"

#include <cstdio>
#include <memory>

#include <sys/resource.h>
#include <unistd.h>

namespace yolohpc::monitor {
namespace {

constexpr double kib_per_mib = 1024;
constexpr double bytes_per_mib = 1024 * 1024;
constexpr double ms_per_s = 1000;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::string_view phase_name(Phase phase) {
  constexpr std::array<std::string_view, phase_count> names = {
      "data_wait", "forward", "backward", "comm_wait", "optimizer", "validation", "other"};
  return names[static_cast<std::size_t>(phase)];
}

double PhaseTimes::share(Phase phase) const {
  return elapsed_s > 0 ? (*this)[phase] / elapsed_s : 0;
}

double PhaseTimes::images_per_s() const {
  return elapsed_s > 0 ? static_cast<double>(images) / elapsed_s : 0;
}

double PhaseTimes::step_ms() const {
  return steps > 0 ? ms_per_s * elapsed_s / static_cast<double>(steps) : 0;
}

PhaseTimes& PhaseTimes::operator+=(PhaseTimes const& more) {
  for (std::size_t i = 0; i < phase_count; ++i) seconds[i] += more.seconds[i];
  steps += more.steps;
  images += more.images;
  elapsed_s += more.elapsed_s;
  return *this;
}

PhaseTimers::PhaseTimers(Clock clock)
    : clock_(clock), total_start_s_(clock()), interval_start_s_(total_start_s_) {}

PhaseTimers::Scope::Scope(PhaseTimers& timers, Phase phase)
    : timers_(timers), phase_(phase), start_s_(timers.clock_()) {}

PhaseTimers::Scope::~Scope() {
  timers_.add(phase_, timers_.clock_() - start_s_);
}

void PhaseTimers::add(Phase phase, double seconds) {
  total_.seconds[static_cast<std::size_t>(phase)] += seconds;
  interval_.seconds[static_cast<std::size_t>(phase)] += seconds;
}

void PhaseTimers::count_step(std::int64_t images) {
  for (auto* times : {&total_, &interval_}) {
    ++times->steps;
    times->images += images;
  }
}

PhaseTimes PhaseTimers::take_interval() {
  double const now_s = clock_();
  PhaseTimes result = interval_;
  result.elapsed_s = now_s - interval_start_s_;
  interval_ = {};
  interval_start_s_ = now_s;
  return result;
}

PhaseTimes PhaseTimers::total() const {
  PhaseTimes result = total_;
  result.elapsed_s = clock_() - total_start_s_;
  return result;
}

void PhaseTimers::restart() {
  total_ = {};
  interval_ = {};
  total_start_s_ = clock_();
  interval_start_s_ = total_start_s_;
}

double peak_memory_mib() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<double>(usage.ru_maxrss) / kib_per_mib
                                               : 0;
}

double resident_memory_mib() {
  std::unique_ptr<std::FILE, Close> const file(std::fopen("/proc/self/statm", "re"));
  long total_pages = 0;
  long resident_pages = 0;
  bool const is_read =
      file != nullptr && std::fscanf(file.get(), "%ld %ld", &total_pages, &resident_pages) == 2;
  auto const page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
  return is_read ? static_cast<double>(resident_pages) * page_bytes / bytes_per_mib : 0;
}

}  // namespace yolohpc::monitor
