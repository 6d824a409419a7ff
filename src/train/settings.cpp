#include "yolohpc/train/settings.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "yolohpc/base/error.hpp"
#include "yolohpc/data/order.hpp"

namespace yolohpc::train {
namespace {

using base::ExitCode;
using base::join;

// Keys that change how a run is carried out but not what it computes.
constexpr std::array free_keys = {
    "data",
    "val-data",
    "out",
    "resume",
    "exist-ok",
    "workers",
    "threads",
    "device",
    "comm",
    "comm-timeout",
    "stage",
    "bucket-mib",
    "overlap",
    "zero",
    "val-every",
    "save-every",
    "save-steps",
    "keep",
    "patience",
    "walltime",
    "stop-before",
    "max-steps",
    "on-checkpoint",
    "log-samples",
    "deterministic",
    "epochs",
    "weights",
    "cuda-graph",
    "checkpoint-activations",
    "single-process",
    "net-if",
    "progress",
    "on-bad-sample",
    "channels-last",
};

bool is_free(std::string const& key) {
  return std::find(free_keys.begin(), free_keys.end(), std::string_view(key)) != free_keys.end();
}

void check_auto_conflicts(TrainSettings const& settings, optim::AutoChoice const& choice) {
  struct Conflict {
    char const* option;
    Chosen const& given;
    double chosen;
  };
  std::array const conflicts = {
      Conflict{"--lr0", settings.lr0, choice.lr0},
      Conflict{"--momentum", settings.momentum, choice.built_momentum},
      Conflict{"--warmup-bias-lr", settings.warmup_bias_lr, choice.warmup_bias_lr},
  };
  for (auto const& conflict : conflicts) {
    YOLOHPC_CHECK_AS(ExitCode::usage,
                     !conflict.given.is_given || conflict.given.value == conflict.chosen,
                     conflict.option, " ", conflict.given.value,
                     " would be ignored: --optimizer auto "
                     "chooses ",
                     optim::to_string(choice.kind), " with ", conflict.chosen,
                     " here. Name the optimizer (--optimizer ", optim::to_string(choice.kind),
                     ") to use your value, or leave ", conflict.option, " out.");
  }
}

void apply_auto(TrainSettings const& settings, std::int64_t images, std::int64_t classes,
                TrainPlan& plan) {
  auto const choice = optim::resolve_auto({.images = images,
                                           .batch = settings.batch,
                                           .nominal_batch = settings.nominal_batch,
                                           .epochs = settings.epochs,
                                           .classes = classes});
  check_auto_conflicts(settings, choice);
  auto& schedule = plan.schedule;
  schedule.optimizer = choice.kind;
  schedule.lr0 = choice.lr0;
  schedule.built_momentum = choice.built_momentum;
  if (choice.kind == optim::OptimizerKind::adamw) schedule.momentum = choice.built_momentum;
  schedule.warmup_bias_lr = choice.warmup_bias_lr;
  plan.notes.push_back(join("optimizer auto: ", optim::to_string(choice.kind), " with lr0 ",
                            choice.lr0, " and momentum ", choice.built_momentum, " (",
                            choice.expected_steps, " expected steps)"));
}

}  // namespace

BatchPlan plan_batch(std::int64_t batch, int ranks, std::int64_t accumulate) {
  data::check_batch_divides(batch, ranks, static_cast<int>(accumulate));
  std::int64_t const parts = ranks * accumulate;
  return {.global = batch,
          .per_rank = batch / ranks,
          .micro_batches = accumulate,
          .per_micro_batch = batch / parts};
}

TrainPlan make_plan(TrainSettings const& settings, int ranks, std::int64_t images,
                    std::int64_t classes) {
  TrainPlan plan;
  plan.batch = plan_batch(settings.batch, ranks, settings.accumulate);
  YOLOHPC_CHECK_AS(ExitCode::usage, images >= settings.batch, "the training split has ", images,
                   " images, fewer than one batch (--batch ", settings.batch,
                   "). Use a smaller batch or more images.");
  plan.steps_per_epoch = (images + settings.batch - 1) / settings.batch;
  plan.schedule = {.epochs = settings.epochs,
                   .iterations_per_epoch = plan.steps_per_epoch,
                   .batch = settings.batch,
                   .nominal_batch = settings.nominal_batch,
                   .optimizer = optim::OptimizerKind::sgd,
                   .lr0 = settings.lr0.value,
                   .lrf = settings.lrf,
                   .decay = settings.cosine ? optim::Decay::cosine : optim::Decay::linear,
                   .momentum = settings.momentum.value,
                   .built_momentum = {},
                   .weight_decay = settings.weight_decay,
                   .warmup_epochs = settings.warmup_epochs,
                   .warmup_momentum = settings.warmup_momentum,
                   .warmup_bias_lr = settings.warmup_bias_lr.value};
  if (settings.optimizer == "auto") {
    apply_auto(settings, images, classes, plan);
  } else {
    plan.schedule.optimizer = optim::parse_optimizer_kind(settings.optimizer);
  }
  double const scaled = optim::scaled_lr0(plan.schedule.lr0, settings.lr_scaling, settings.batch,
                                          settings.lr_reference_batch);
  if (settings.lr_scaling != optim::LrScaling::none) {
    plan.notes.push_back(join("lr0 ", plan.schedule.lr0, " scaled to ", scaled, " for batch ",
                              settings.batch, " (reference ", settings.lr_reference_batch, ")"));
  }
  plan.schedule.lr0 = scaled;
  return plan;
}

std::vector<ConfigChange> compare_configs(ConfigPairs const& before, ConfigPairs const& now) {
  std::map<std::string, std::string> const stored(before.begin(), before.end());
  std::vector<ConfigChange> allowed;
  std::string forbidden;
  for (auto const& [key, value] : now) {
    auto const found = stored.find(key);
    // A key that the older program did not know has its default now, which is what it did then.
    if (found == stored.end() || found->second == value) continue;
    if (is_free(key)) {
      allowed.push_back({key, found->second, value});
    } else {
      forbidden += join("\n  --", key, ": ", found->second, " in the checkpoint, ", value, " now");
    }
  }
  YOLOHPC_CHECK_AS(
      ExitCode::usage, forbidden.empty(), "this would resume as another training run:", forbidden,
      "\nGive the settings of the checkpoint (--config RUN/config.cfg), or start a new run "
      "in another folder with --weights.");
  return allowed;
}

}  // namespace yolohpc::train
