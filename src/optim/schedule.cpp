#include "yolohpc/optim/schedule.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

#include <ATen/ops/scalar_tensor.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::optim {
namespace {

using base::ExitCode;

/// Nearest integer, ties to even (the rounding mode a process starts with).
std::int64_t round_half_even(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

/// Rounded in decimal from the exact binary value, as printing does it: multiplying by 10^6 first
/// would move values next to a tie onto it.
double round_decimals(double value, int decimals) {
  std::array<char, 64> text{};
  auto const end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::fixed, decimals)
                       .ptr;
  double rounded = 0;
  std::from_chars(text.data(), end, rounded);
  return rounded;
}

void check_at_least(char const* option, double value, double least) {
  YOLOHPC_CHECK_AS(ExitCode::usage, std::isfinite(value) && value >= least, option, " is ", value,
                   " (needs to be at least ", least, ").");
}

ScheduleSettings checked(ScheduleSettings const& settings) {
  check_at_least("epochs", static_cast<double>(settings.epochs), 1);
  check_at_least("the number of iterations per epoch",
                 static_cast<double>(settings.iterations_per_epoch), 1);
  check_at_least("batch", static_cast<double>(settings.batch), 1);
  check_at_least("nbs", static_cast<double>(settings.nominal_batch), 0);
  check_at_least("lr0", settings.lr0, 0);
  check_at_least("lrf", settings.lrf, 0);
  check_at_least("weight-decay", settings.weight_decay, 0);
  check_at_least("warmup-epochs", settings.warmup_epochs, 0);
  check_at_least("warmup-bias-lr", settings.warmup_bias_lr, 0);
  for (double const momentum : {settings.momentum, settings.warmup_momentum,
                                settings.built_momentum.value_or(settings.momentum)}) {
    YOLOHPC_CHECK_AS(ExitCode::usage, momentum >= 0 && momentum < 1, "momentum is ", momentum,
                     " (needs to be in [0, 1)).");
  }
  return settings;
}

}  // namespace

Schedule::Schedule(ScheduleSettings settings) : settings_(checked(settings)) {
  auto const& s = settings_;
  scaled_weight_decay_ = s.weight_decay;
  if (s.nominal_batch > 0) {
    double const ratio = static_cast<double>(s.nominal_batch) / static_cast<double>(s.batch);
    accumulation_ = std::max<std::int64_t>(round_half_even(ratio), 1);
    scaled_weight_decay_ = s.weight_decay * static_cast<double>(s.batch) *
                           static_cast<double>(accumulation_) /
                           static_cast<double>(s.nominal_batch);
    // The decay keeps the uncapped value: so does the reference.
    accumulation_ = std::min(accumulation_, iterations());
  }
  double const warmup_epochs = std::min(s.warmup_epochs, static_cast<double>(s.epochs - 1));
  warmup_iterations_ = round_half_even(warmup_epochs * static_cast<double>(s.iterations_per_epoch));
}

double Schedule::epoch_factor(std::int64_t epoch) const {
  double const progress = static_cast<double>(epoch) / static_cast<double>(settings_.epochs);
  double const lrf = settings_.lrf;
  if (settings_.decay == Decay::linear) return std::max(1 - progress, 0.0) * (1 - lrf) + lrf;
  return std::max((1 - std::cos(std::numbers::pi * progress)) / 2, 0.0) * (lrf - 1) + 1;
}

// The order of operations is that of numpy.interp, because ties of a rounded result depend on it.
double Schedule::warmed(std::int64_t iteration, double from, double to) const {
  if (iteration >= warmup_iterations_) return to;
  double const slope = (to - from) / static_cast<double>(warmup_iterations_);
  return slope * static_cast<double>(iteration) + from;
}

double Schedule::learning_rate(std::int64_t iteration, GroupKind kind, double lr_factor) const {
  auto const epoch = iteration / settings_.iterations_per_epoch;
  double const scheduled = settings_.lr0 * lr_factor * epoch_factor(epoch);
  if (!is_warming_up(iteration)) return scheduled;
  double const start = kind == GroupKind::bias ? settings_.warmup_bias_lr : 0.0;
  return warmed(iteration, start, scheduled);
}

double Schedule::momentum(std::int64_t iteration) const {
  double const built = settings_.built_momentum.value_or(settings_.momentum);
  if (settings_.optimizer == OptimizerKind::adamw || warmup_iterations_ == 0) return built;
  // The warm-up ends at the setting, not at the value the optimizer was built with.
  return warmed(iteration, settings_.warmup_momentum, settings_.momentum);
}

std::int64_t Schedule::accumulation(std::int64_t iteration) const {
  if (!is_warming_up(iteration)) return accumulation_;
  double const warm = warmed(iteration, 1.0, static_cast<double>(accumulation_));
  return std::max<std::int64_t>(1, round_half_even(warm));
}

std::vector<GroupHyper> Schedule::hyper(std::int64_t iteration,
                                        std::span<ParameterGroup const> groups) const {
  std::vector<GroupHyper> result;
  for (auto const& group : groups) {
    result.push_back({.lr = learning_rate(iteration, group.kind, group.lr_factor),
                      .weight_decay = group.decays ? scaled_weight_decay_ : 0.0,
                      .momentum = momentum(iteration)});
  }
  return result;
}

bool StepRule::advance(std::int64_t iteration, std::int64_t accumulation) {
  if (iteration - last_ < accumulation) return false;
  last_ = iteration;
  return true;
}

base::NamedTensors StepRule::state() const {
  return {{"last", at::scalar_tensor(last_, at::kLong)}};
}

void StepRule::load_state(base::NamedTensors const& state) {
  auto const last = base::find_tensor(state, "last");
  YOLOHPC_CHECK_AS(ExitCode::bad_data, last.defined(),
                   "the step rule's entry 'last' is missing among ", state.size(),
                   " entries. The checkpoint is of another format; start from another one.");
  last_ = last.item<std::int64_t>();
}

double scaled_lr0(double lr0, LrScaling scaling, std::int64_t batch, std::int64_t reference_batch) {
  check_at_least("batch", static_cast<double>(batch), 1);
  check_at_least("lr-reference-batch", static_cast<double>(reference_batch), 1);
  double const ratio = static_cast<double>(batch) / static_cast<double>(reference_batch);
  switch (scaling) {
    case LrScaling::none:
      return lr0;
    case LrScaling::linear:
      return lr0 * ratio;
    case LrScaling::sqrt:
      return lr0 * std::sqrt(ratio);
  }
  return lr0;
}

AutoChoice resolve_auto(AutoQuery const& query) {
  // Constants of the reference recipe, spec/optim.md section 3.
  constexpr std::int64_t most_adamw_steps = 10000;
  constexpr double musgd_lr0 = 0.01;
  constexpr double built_momentum = 0.9;
  constexpr int lr0_decimals = 6;

  auto const step_images = std::max(query.batch, query.nominal_batch);
  check_at_least("batch", static_cast<double>(step_images), 1);
  AutoChoice choice;
  choice.expected_steps = (query.images + step_images - 1) / step_images * query.epochs;
  choice.built_momentum = built_momentum;
  choice.warmup_bias_lr = 0;
  if (choice.expected_steps > most_adamw_steps) {
    choice.kind = OptimizerKind::musgd;
    choice.lr0 = musgd_lr0;
  } else {
    choice.kind = OptimizerKind::adamw;
    choice.lr0 = round_decimals(0.002 * 5 / (4 + static_cast<double>(query.classes)), lr0_decimals);
  }
  return choice;
}

}  // namespace yolohpc::optim
