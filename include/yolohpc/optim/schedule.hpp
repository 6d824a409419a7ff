// Learning rate, momentum and accumulation as functions of the global iteration; the rule when to
// step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "yolohpc/base/named_tensors.hpp"
#include "yolohpc/optim/optimizer.hpp"
#include "yolohpc/optim/param_groups.hpp"

namespace yolohpc::optim {

enum class Decay { linear, cosine };

struct ScheduleSettings {
  std::int64_t epochs = 100;
  std::int64_t iterations_per_epoch = 1;  ///< global batches per epoch
  std::int64_t batch = 16;                ///< global batch, images
  std::int64_t nominal_batch = 64;        ///< nbs; 0 = step every iteration, decay as given
  OptimizerKind optimizer = OptimizerKind::sgd;
  double lr0 = 0.01;
  double lrf = 0.01;  ///< final learning rate as a share of lr0
  Decay decay = Decay::linear;
  double momentum = 0.937;  ///< for AdamW beta1
  /// What the optimizer is built with when `auto` chose it; in force where no warm-up overrides it.
  std::optional<double> built_momentum;
  double weight_decay = 5e-4;
  double warmup_epochs = 3.0;
  double warmup_momentum = 0.8;
  double warmup_bias_lr = 0.1;
};

/// A pure function of the global iteration: equal on all ranks and after a resume by construction.
/// An iteration is one global batch, so nothing here depends on the number of ranks. Source: the
/// reference recipe; fixture schedule.json.
class Schedule {
 public:
  /// \throws Error (usage)  a setting is outside its range; the text names the option and the value
  explicit Schedule(ScheduleSettings settings);

  ScheduleSettings const& settings() const { return settings_; }
  std::int64_t iterations() const { return settings_.epochs * settings_.iterations_per_epoch; }
  /// Iterations 0 ... warmup_iterations() (inclusive) are warmed up; 0: none is.
  std::int64_t warmup_iterations() const { return warmup_iterations_; }
  /// Iterations per optimizer step after the warm-up, at least 1.
  std::int64_t nominal_accumulation() const { return accumulation_; }
  /// weight_decay * batch * accumulation / nominal batch.
  double scaled_weight_decay() const { return scaled_weight_decay_; }

  /// Decay factor of `epoch` (from 0): 1 in the first, never quite lrf in the last.
  double epoch_factor(std::int64_t epoch) const;
  /// Learning rate in force during iteration `iteration` (from 0) for a group of this kind.
  double learning_rate(std::int64_t iteration, GroupKind kind, double lr_factor = 1.0) const;
  /// Momentum (for AdamW beta1, which is never warmed up) in force during `iteration`.
  double momentum(std::int64_t iteration) const;
  /// Iterations per optimizer step in force during `iteration`, at least 1.
  std::int64_t accumulation(std::int64_t iteration) const;
  /// Everything the optimizer needs for a step after `iteration`, one entry per group.
  std::vector<GroupHyper> hyper(std::int64_t iteration,
                                std::span<ParameterGroup const> groups) const;

 private:
  bool is_warming_up(std::int64_t iteration) const {
    return warmup_iterations_ > 0 && iteration <= warmup_iterations_;
  }
  double warmed(std::int64_t iteration, double from, double to) const;

  ScheduleSettings settings_;
  std::int64_t accumulation_ = 1;
  std::int64_t warmup_iterations_ = 0;
  double scaled_weight_decay_ = 0;
};

/// Decides after each iteration whether the optimizer steps: at least `accumulation` iterations
/// have passed since the one that stepped last. Counts across epochs.
class StepRule {
 public:
  /// True when the optimizer steps after `iteration`; remembers it then. Call once per iteration,
  /// in order.
  bool advance(std::int64_t iteration, std::int64_t accumulation);
  /// The iteration that stepped last, -1 before the first.
  std::int64_t last() const { return last_; }

  /// "last" () int64.
  base::NamedTensors state() const;
  /// \throws Error (bad data)  "last" is missing
  void load_state(base::NamedTensors const& state);

 private:
  std::int64_t last_ = -1;
};

enum class LrScaling { none, linear, sqrt };

/// lr0 times (batch / reference_batch), its square root, or 1.
/// \throws Error (usage)  a batch is below 1
double scaled_lr0(double lr0, LrScaling scaling, std::int64_t batch, std::int64_t reference_batch);

/// What `--optimizer auto` depends on.
struct AutoQuery {
  std::int64_t images = 0;  ///< training images
  std::int64_t batch = 16;  ///< global
  std::int64_t nominal_batch = 64;
  std::int64_t epochs = 100;
  std::int64_t classes = 80;
};

/// What it chose. The caller refuses a value that the user gave and that differs.
struct AutoChoice {
  OptimizerKind kind = OptimizerKind::sgd;
  double lr0 = 0;
  double built_momentum = 0;  ///< ScheduleSettings::built_momentum
  double warmup_bias_lr = 0;
  std::int64_t expected_steps =
      0;  ///< ceil(images / max(batch, nominal_batch)) * epochs, the deciding number
};

/// More than 10 000 expected steps: MuSGD, lr0 0.01; else AdamW, lr0 = round(0.01 / (4 + classes),
/// 6). Momentum 0.9 and warm-up of biases from 0 in both. Source: the reference recipe.
AutoChoice resolve_auto(AutoQuery const& query);

}  // namespace yolohpc::optim
