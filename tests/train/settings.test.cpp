#include "yolohpc/train/settings.hpp"

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::train {
namespace {

std::string message_of(auto const& call) {
  try {
    call();
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage);
    return error.what();
  }
  return "accepted";
}

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST(PlanBatch, CutsEvenlyOrNamesTheNearest) {
  auto const plan = plan_batch(24, 4, 3);
  EXPECT_EQ(plan.per_rank, 6);
  EXPECT_EQ(plan.per_micro_batch, 2);
  auto const text = message_of([] { plan_batch(6, 4, 1); });
  EXPECT_TRUE(has(text, "6") && has(text, "4") && has(text, "8")) << text;
  EXPECT_TRUE(has(message_of([] { plan_batch(2, 4, 1); }), "4"));
}

TEST(MakePlan, CountsStepsOnceForAllRanks) {
  TrainSettings settings;
  settings.optimizer = "sgd";
  settings.batch = 8;
  for (int const ranks : {1, 2, 4}) {
    EXPECT_EQ(make_plan(settings, ranks, 8, 3).steps_per_epoch, 1);
    EXPECT_EQ(make_plan(settings, ranks, 9, 3).steps_per_epoch, 2);
  }
  EXPECT_TRUE(has(message_of([&] { make_plan(settings, 1, 7, 3); }), "7"));
}

TEST(MakePlan, AutoRefusesAValueItWouldIgnore) {
  TrainSettings settings;
  settings.epochs = 1;
  EXPECT_EQ(make_plan(settings, 1, 100, 80).schedule.optimizer, optim::OptimizerKind::adamw);
  EXPECT_DOUBLE_EQ(make_plan(settings, 1, 100, 80).schedule.lr0, 0.000119);
  settings.lr0 = {0.02, true};
  auto const text = message_of([&] { make_plan(settings, 1, 100, 80); });
  EXPECT_TRUE(has(text, "--lr0") && has(text, "0.02") && has(text, "adamw")) << text;
}

TEST(CompareConfigs, AllowsWhatDoesNotChangeResultsAndNamesTheRest) {
  ConfigPairs const before = {{"batch", "16"}, {"workers", "1"}, {"seed", "0"}, {"epochs", "10"}};
  ConfigPairs const same = {
      {"batch", "16"}, {"workers", "4"}, {"seed", "0"}, {"epochs", "12"}, {"later-option", "x"}};
  auto const changes = compare_configs(before, same);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].key, "workers");
  EXPECT_EQ(changes[1].now, "12");
  auto const text = message_of([&] { compare_configs(before, {{"batch", "8"}, {"seed", "1"}}); });
  EXPECT_TRUE(has(text, "--batch: 16 in the checkpoint, 8 now")) << text;
  EXPECT_TRUE(has(text, "--seed: 0 in the checkpoint, 1 now")) << text;
}

}  // namespace
}  // namespace yolohpc::train
