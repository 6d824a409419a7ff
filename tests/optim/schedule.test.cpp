#include "yolohpc/optim/schedule.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/optim/ema.hpp"

#include "support/golden.hpp"

namespace yolohpc::optim {
namespace {

using nlohmann::json;

ScheduleSettings settings_of(json const& config) {
  ScheduleSettings s;
  s.epochs = config.at("epochs");
  s.iterations_per_epoch = config.at("iterations_per_epoch");
  s.batch = config.at("batch_total");
  s.nominal_batch = config.at("nbs");
  s.optimizer = config.at("optimizer") == "AdamW" ? OptimizerKind::adamw : OptimizerKind::sgd;
  s.lr0 = config.at("lr0");
  s.lrf = config.at("lrf");
  s.decay = config.at("cos_lr").get<bool>() ? Decay::cosine : Decay::linear;
  s.momentum = config.at("momentum");
  s.weight_decay = config.at("weight_decay");
  s.warmup_epochs = config.at("warmup_epochs");
  s.warmup_momentum = config.at("warmup_momentum");
  s.warmup_bias_lr = config.at("warmup_bias_lr");
  return s;
}

void expect_relative(double got, json const& expected, char const* what) {
  constexpr double bound = 1e-9;  // the fixture's "tolerance" text
  double const value = expected;
  EXPECT_LE(std::abs(got - value), bound * std::abs(value)) << what << ' ' << got << ' ' << value;
}

// Every iteration of every recipe: rates, momentum, accumulation, steps, EMA decay.
TEST(ScheduleFixture, IsFollowedAtEveryIteration) {
  auto const fixture = testing::golden_json("schedule.json");
  for (auto const& recipe : fixture.at("recipes")) {
    SCOPED_TRACE(recipe.at("name").get<std::string>());
    Schedule const schedule(settings_of(recipe.at("config")));
    auto const& derived = recipe.at("derived");
    EXPECT_EQ(schedule.nominal_accumulation(), derived.at("accumulate_nominal").get<int>());
    EXPECT_EQ(schedule.warmup_iterations(), derived.at("warmup_iterations").get<int>());
    expect_relative(schedule.scaled_weight_decay(), derived.at("weight_decay_scaled"), "decay");

    auto const& rows = recipe.at("per_iteration");
    Ema const ema({}, {});
    StepRule rule;
    std::int64_t steps = 0;
    ASSERT_EQ(rows.at("step").size(), static_cast<std::size_t>(schedule.iterations()));
    for (std::int64_t ni = 0; ni < schedule.iterations(); ++ni) {
      SCOPED_TRACE(ni);
      auto const row = [&](char const* key) {
        return rows.at(key).at(static_cast<std::size_t>(ni));
      };
      expect_relative(schedule.learning_rate(ni, GroupKind::bias), row("lr_bias"), "lr_bias");
      expect_relative(schedule.learning_rate(ni, GroupKind::weight), row("lr_other"), "lr_other");
      expect_relative(schedule.learning_rate(ni, GroupKind::norm), row("lr_other"), "lr of norm");
      if (row("momentum").is_null()) {
        EXPECT_EQ(schedule.momentum(ni), schedule.settings().momentum);
      } else {
        expect_relative(schedule.momentum(ni), row("momentum"), "momentum");
      }
      EXPECT_EQ(schedule.accumulation(ni), row("accumulate").get<int>());
      bool const stepped = rule.advance(ni, schedule.accumulation(ni));
      EXPECT_EQ(stepped, row("step").get<int>() == 1);
      steps += stepped ? 1 : 0;
      EXPECT_EQ(steps, row("ema_updates").get<int>());
      expect_relative(ema.decay_at(steps), row("ema_decay"), "ema_decay");
    }
    EXPECT_EQ(steps, recipe.at("total_optimizer_steps").get<int>());
  }
}

// The boosted class branch: three times the scheduled rate, the warm-up's start included for
// neither kind.
TEST(Schedule, BoostsTheBaseRateButNotTheWarmUpStart) {
  ScheduleSettings s;
  s.epochs = 10;
  s.iterations_per_epoch = 10;
  Schedule const schedule(s);  // 30 iterations of warm-up from bias rate 0.1
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0, GroupKind::bias, 3.0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0, GroupKind::muon, 3.0), 0.0);
  // Iteration 15, epoch 1: f = 0.9 * 0.99 + 0.01 = 0.901.
  EXPECT_NEAR(schedule.learning_rate(15, GroupKind::bias, 3.0), (0.1 + 0.03 * 0.901) / 2, 1e-12);
  EXPECT_NEAR(schedule.learning_rate(15, GroupKind::muon, 3.0), 0.03 * 0.901 / 2, 1e-12);
  EXPECT_NEAR(schedule.learning_rate(95, GroupKind::muon, 3.0), 0.03 * (0.1 * 0.99 + 0.01), 1e-12);
}

TEST(Schedule, OneEpochHasNoWarmUp) {
  ScheduleSettings s;
  s.epochs = 1;
  s.iterations_per_epoch = 100;
  Schedule const schedule(s);
  EXPECT_EQ(schedule.warmup_iterations(), 0);
  EXPECT_EQ(schedule.learning_rate(0, GroupKind::weight), s.lr0);
  EXPECT_EQ(schedule.momentum(0), s.momentum);
}

TEST(Schedule, WithoutNominalBatchStepsEveryIterationAndKeepsTheDecay) {
  ScheduleSettings s;
  s.nominal_batch = 0;
  s.iterations_per_epoch = 50;
  s.batch = 3;
  Schedule const schedule(s);
  EXPECT_EQ(schedule.scaled_weight_decay(), s.weight_decay);
  StepRule rule;
  for (std::int64_t ni = 0; ni < 200; ++ni) {
    EXPECT_TRUE(rule.advance(ni, schedule.accumulation(ni)));
  }
}

// spec/optim.md section 1: batch 48 gives 64 / 48 = 1.33, so 1; a short run caps the accumulation
// but keeps the decay; 64 / 128 = 0.5 rounds to 0 and is lifted to 1.
TEST(Schedule, ScalesDecayWithBatchAndAccumulation) {
  ScheduleSettings s;
  s.iterations_per_epoch = 50;
  s.batch = 48;
  EXPECT_NEAR(Schedule(s).scaled_weight_decay(), 3.75e-4, 1e-15);
  s.batch = 128;
  EXPECT_NEAR(Schedule(s).scaled_weight_decay(), 1e-3, 1e-15);
  s.batch = 4;
  s.epochs = 1;
  s.iterations_per_epoch = 5;
  Schedule const capped(s);
  EXPECT_EQ(capped.nominal_accumulation(), 5);
  EXPECT_NEAR(capped.scaled_weight_decay(), 5e-4, 1e-15);
}

// Groups without decay get none, and each group its own rate.
TEST(Schedule, GivesEachGroupItsSettings) {
  ScheduleSettings s;
  s.epochs = 10;
  s.iterations_per_epoch = 20;
  Schedule const schedule(s);
  std::vector<ParameterGroup> const groups = {{GroupKind::weight, 1.0, true},
                                              {GroupKind::bias, 1.0, false}};
  auto const hyper = schedule.hyper(10, groups);
  ASSERT_EQ(hyper.size(), 2u);
  EXPECT_EQ(hyper[0].lr, schedule.learning_rate(10, GroupKind::weight));
  EXPECT_EQ(hyper[1].lr, schedule.learning_rate(10, GroupKind::bias));
  EXPECT_EQ(hyper[0].weight_decay, schedule.scaled_weight_decay());
  EXPECT_EQ(hyper[1].weight_decay, 0.0);
  EXPECT_EQ(hyper[0].momentum, schedule.momentum(10));
}

// `auto` builds MuSGD with 0.9, but the warm-up drives the momentum to the setting; AdamW keeps
// 0.9.
TEST(Schedule, WarmUpOverridesTheBuiltMomentum) {
  ScheduleSettings s;
  s.epochs = 10;
  s.iterations_per_epoch = 20;
  s.built_momentum = 0.9;
  s.optimizer = OptimizerKind::musgd;
  EXPECT_EQ(Schedule(s).momentum(0), 0.8);
  EXPECT_EQ(Schedule(s).momentum(150), 0.937);
  s.optimizer = OptimizerKind::adamw;
  EXPECT_EQ(Schedule(s).momentum(0), 0.9);
  EXPECT_EQ(Schedule(s).momentum(150), 0.9);
  s.optimizer = OptimizerKind::musgd;
  s.epochs = 1;
  EXPECT_EQ(Schedule(s).momentum(5), 0.9);
}

TEST(Schedule, NamesTheSettingThatIsOutOfRange) {
  ScheduleSettings s;
  s.lr0 = -0.25;
  try {
    Schedule const schedule(s);
    FAIL() << "a negative rate was taken";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("lr0 is -0.25"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), base::ExitCode::usage);
  }
}

TEST(StepRule, GoesOnWhereItWasSaved) {
  StepRule whole;
  StepRule first;
  std::vector<bool> expected;
  for (std::int64_t ni = 0; ni < 20; ++ni) expected.push_back(whole.advance(ni, 3));
  for (std::int64_t ni = 0; ni < 7; ++ni) first.advance(ni, 3);
  StepRule second;
  second.load_state(first.state());
  EXPECT_EQ(second.last(), 5);
  for (std::int64_t ni = 7; ni < 20; ++ni) {
    EXPECT_EQ(second.advance(ni, 3), expected[static_cast<std::size_t>(ni)]) << ni;
  }
  EXPECT_THROW(second.load_state({}), base::Error);
}

TEST(LrScaling, MultipliesByTheBatchRatio) {
  EXPECT_DOUBLE_EQ(scaled_lr0(0.01, LrScaling::none, 256, 64), 0.01);
  EXPECT_DOUBLE_EQ(scaled_lr0(0.01, LrScaling::linear, 256, 64), 0.04);
  EXPECT_DOUBLE_EQ(scaled_lr0(0.01, LrScaling::sqrt, 256, 64), 0.02);
  EXPECT_THROW(scaled_lr0(0.01, LrScaling::linear, 256, 0), base::Error);
}

// The numbers of spec/optim.md section 3 for COCO.
TEST(AutoOptimizer, DependsOnTheNumberOfSteps) {
  auto const small = resolve_auto({118287, 16, 64, 100, 80});
  EXPECT_EQ(small.expected_steps, 184900);
  EXPECT_EQ(small.kind, OptimizerKind::musgd);
  EXPECT_EQ(small.lr0, 0.01);
  EXPECT_EQ(resolve_auto({118287, 512, 64, 100, 80}).expected_steps, 23200);
  auto const large = resolve_auto({118287, 4096, 64, 100, 80});
  EXPECT_EQ(large.expected_steps, 2900);
  EXPECT_EQ(large.kind, OptimizerKind::adamw);
  EXPECT_EQ(large.lr0, 0.000119);
  EXPECT_EQ(large.built_momentum, 0.9);
  EXPECT_EQ(large.warmup_bias_lr, 0.0);
  EXPECT_EQ(resolve_auto({6400, 64, 64, 100, 80}).kind, OptimizerKind::adamw);  // 10 000 exactly
  EXPECT_EQ(resolve_auto({6401, 64, 64, 100, 80}).kind, OptimizerKind::musgd);
}

// Python: round(0.002 * 5 / (4 + nc), 6). With 28 classes the exact value lies just above a tie.
TEST(AutoOptimizer, RoundsTheRateInDecimal) {
  EXPECT_EQ(resolve_auto({1, 16, 64, 1, 28}).lr0, 0.000313);
  EXPECT_EQ(resolve_auto({1, 16, 64, 1, 1}).lr0, 0.002);
  EXPECT_EQ(resolve_auto({1, 16, 64, 1, 3}).lr0, 0.001429);
}

}  // namespace
}  // namespace yolohpc::optim
