#include "yolohpc/train/stop.hpp"

#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <vector>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"

namespace yolohpc::train {
namespace {

// The handler's only way to speak: see StopSignals.
volatile std::sig_atomic_t last_signal = 0;

constexpr std::array stop_signals = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

void remember(int signal) {
  last_signal = signal;
}

std::optional<double> number(std::string const& text) {
  double value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0)) return {};
  return value;
}

std::optional<double> duration_s(std::string const& text) {
  double days = 0;
  std::string rest = text;
  if (auto const dash = text.find('-'); dash != std::string::npos) {
    auto const value = number(text.substr(0, dash));
    if (!value) return {};
    days = *value;
    rest = text.substr(dash + 1);
  }
  double seconds = 0;
  int parts = 0;
  for (std::size_t begin = 0; begin <= rest.size(); ++parts) {
    auto const colon = std::min(rest.find(':', begin), rest.size());
    auto const value = number(rest.substr(begin, colon - begin));
    if (!value || parts == 3) return {};
    seconds = seconds * 60 + *value;
    begin = colon + 1;
  }
  constexpr double day_s = 86400;
  return days * day_s + seconds;
}

}  // namespace

StopSignals::StopSignals() {
  last_signal = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  for (int const signal : stop_signals) ::sigaction(signal, &action, nullptr);
}

StopSignals::~StopSignals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int const signal : stop_signals) ::sigaction(signal, &action, nullptr);
}

int StopSignals::received() const {
  return last_signal;
}

std::optional<double> walltime_end_s(std::string const& walltime,
                                     std::map<std::string, std::string> const& environment,
                                     double process_start_s) {
  auto const variable = [&](char const* name) -> std::optional<double> {
    auto const found = environment.find(name);
    return found == environment.end() ? std::nullopt : number(found->second);
  };
  if (walltime != "auto") {
    auto const seconds = duration_s(walltime);
    YOLOHPC_CHECK_AS(base::ExitCode::usage, seconds.has_value(), "--walltime ", walltime,
                     " is no duration. Give seconds, MM:SS, HH:MM:SS or D-HH:MM:SS, or auto.");
    return process_start_s + *seconds;
  }
  if (auto const end = variable("SLURM_JOB_END_TIME")) return end;
  if (auto const seconds = variable("PBS_WALLTIME")) {
    return variable("SLURM_JOB_START_TIME").value_or(process_start_s) + *seconds;
  }
  return {};
}

std::string StopWatch::reason() const {
  if (int const signal = signals_.received(); signal != 0) {
    return base::join("signal ", signal, " (", ::strsignal(signal), ")");
  }
  if (settings_.end_s &&
      base::wall_clock_s() + settings_.margin_s + longest_s_ >= *settings_.end_s) {
    return "the wall-clock limit is near";
  }
  return {};
}

}  // namespace yolohpc::train
