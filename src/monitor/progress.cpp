#include "yolohpc/monitor/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>

#include <sys/ioctl.h>
#include <unistd.h>

namespace yolohpc::monitor {
namespace {

constexpr double bar_interval_s = 0.2;
constexpr int bar_cells = 20;
constexpr int default_columns = 80;
constexpr std::int64_t minute_s = 60;
constexpr std::int64_t hour_s = 60 * minute_s;
constexpr std::int64_t day_s = 24 * hour_s;

std::string formatted(char const* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string two_digits(std::int64_t value) {
  std::string text = std::to_string(value);
  if (text.size() < 2) text.insert(text.begin(), '0');
  return text;
}

int terminal_columns(std::FILE* out) {
  winsize size{};
  bool const is_known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : default_columns;
}

// Open MPI gives its ranks a pseudo-terminal even when its own output goes to a file, so what
// counts under it is where the launcher writes.
bool is_terminal(std::FILE* out) {
  if (::isatty(::fileno(out)) != 1) return false;
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return true;
  std::error_code error;
  auto const launcher = std::filesystem::path("/proc") / std::to_string(::getppid()) / "fd/1";
  auto const target = std::filesystem::read_symlink(launcher, error).string();
  return !error && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty"));
}

// Everything but the position in the epoch, which the bar shows in its own way.
std::string figures(ProgressState const& state) {
  std::ostringstream text;
  char const* gap = "";
  for (auto const& [name, value] : state.losses) {
    text << gap << name << ' ' << formatted("%.3f", value);
    gap = " ";
  }
  if (!state.losses.empty()) text << "  ";
  text << formatted(state.images_per_s < 10 ? "%.1f" : "%.0f", state.images_per_s)
       << " img/s  data wait " << formatted("%.0f", 100 * state.data_wait) << " %  ETA "
       << duration_text(state.eta_s);
  return text.str();
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || !std::isfinite(seconds)) return "-";
  auto const total = static_cast<std::int64_t>(std::llround(seconds));
  auto const minutes = two_digits(total % hour_s / minute_s);
  if (total < minute_s) return std::to_string(total) + " s";
  if (total < hour_s) {
    return std::to_string(total / minute_s) + ':' + two_digits(total % minute_s);
  }
  if (total < day_s) {
    return std::to_string(total / hour_s) + ':' + minutes + ':' + two_digits(total % minute_s);
  }
  return std::to_string(total / day_s) + " d " + two_digits(total % day_s / hour_s) + ':' + minutes;
}

std::string progress_text(ProgressState const& state) {
  std::ostringstream text;
  text << "epoch " << state.epoch << '/' << state.epochs << "  step " << state.step << '/'
       << state.steps << "  " << figures(state);
  return text.str();
}

std::string progress_bar(ProgressState const& state, int columns) {
  auto const share =
      state.steps > 0 ? static_cast<double>(state.step) / static_cast<double>(state.steps) : 0.0;
  auto const filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * bar_cells);
  std::ostringstream text;
  text << "epoch " << state.epoch << '/' << state.epochs << " [" << std::string(filled, '=')
       << std::string(bar_cells - filled, ' ') << "] " << state.step << '/' << state.steps << "  "
       << figures(state);
  // The last column stays free: some terminals wrap when it is written.
  return text.str().substr(0, static_cast<std::size_t>(std::max(columns - 1, 1)));
}

double estimate_remaining_s(ProgressState const& state, double seconds_per_step,
                            double validation_s) {
  auto const epochs_left = static_cast<double>(state.epochs - state.epoch);
  auto const steps_left = epochs_left * static_cast<double>(state.steps) +
                          static_cast<double>(state.steps - state.step);
  return steps_left * seconds_per_step + (epochs_left + 1) * validation_s;
}

Progress::Progress(Settings settings)
    : settings_(settings), last_s_(-std::numeric_limits<double>::infinity()) {
  if (settings_.style == Style::automatic) {
    settings_.style = is_terminal(settings_.out) ? Style::bar : Style::lines;
  }
  if (!settings_.is_root) settings_.style = Style::silent;
}

bool Progress::is_due() const {
  if (settings_.style == Style::silent) return false;
  double const interval_s = settings_.style == Style::bar ? bar_interval_s : settings_.interval_s;
  return settings_.clock() - last_s_ >= interval_s;
}

void Progress::update(ProgressState const& state) {
  bool const ends_epoch = state.step >= state.steps;
  if (settings_.style == Style::silent || (!ends_epoch && !is_due())) return;
  last_s_ = settings_.clock();
  if (settings_.style == Style::lines) {
    print(progress_text(state) + '\n');
    return;
  }
  // Back to the line's beginning, and clear what a longer bar left there.
  std::string line(1, '\r');
  line += progress_bar(state, terminal_columns(settings_.out));
  line += "\033[K";
  print(line);
  has_bar_ = true;
}

void Progress::line(std::string const& text) {
  if (settings_.style == Style::silent) return;
  print((has_bar_ ? "\r\033[K" : "") + text + '\n');
  has_bar_ = false;
}

void Progress::print(std::string const& text) {
  std::fwrite(text.data(), 1, text.size(), settings_.out);
  std::fflush(settings_.out);
}

}  // namespace yolohpc::monitor
