#include "yolohpc/train/train_state.hpp"

#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/world.hpp"

#include "support/golden.hpp"

namespace yolohpc::train {
namespace {

constexpr std::int64_t classes = 3;

TrainSettings small_settings() {
  TrainSettings settings;
  settings.image_size = 64;
  settings.batch = 4;
  settings.epochs = 4;
  settings.optimizer = "adamw";
  settings.lr0 = {0.001, true};
  settings.nominal_batch = 8;  // two iterations for each update
  settings.warmup_epochs = 0;
  return settings;
}

// The images of iteration `number` that belong to this rank.
data::Batch batch_of(std::int64_t number, comm::Communicator const& communicator, int image_size) {
  auto const all = (testing::formula_image("image", {4, 3, image_size, image_size},
                                           static_cast<std::uint32_t>(number)) *
                    255)
                       .to(at::kByte);
  std::int64_t const share = 4 / communicator.size();
  data::Batch batch;
  batch.images = all.narrow(0, communicator.rank() * share, share);
  batch.boxes = at::tensor({0.5f, 0.5f, 0.4f, 0.6f}).view({1, 1, 4}).repeat({share, 8, 1});
  batch.labels = at::ones({share, 8}, at::kLong);
  batch.valid = at::zeros({share, 8}, at::kBool);
  batch.valid.narrow(1, 0, 1).fill_(true);
  return batch;
}

class TrainStates : public ::testing::Test {
 protected:
  std::unique_ptr<TrainState> make(TrainSettings const& settings) {
    auto const plan = make_plan(settings, communicator_->size(), 12, classes);
    return std::make_unique<TrainState>(model::load_graph("yolo11n"), classes, settings, plan,
                                        *communicator_);
  }
  StepReport step(TrainState& state) {
    data::Batch const batch = batch_of(state.iteration(), *communicator_, 64);
    return state.step(std::span(&batch, 1), false, timers_);
  }

  comm::World world_;
  std::unique_ptr<comm::Communicator> communicator_ =
      comm::make_mpi_communicator(world_, {.timeout_s = 60});
  monitor::PhaseTimers timers_;
};

void expect_same_bits(base::Safetensors const& a, base::Safetensors const& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_TRUE(a.tensors[i].tensor.equal(b.tensors[i].tensor)) << a.tensors[i].name;
  }
}

base::Safetensors through_a_file(TrainState const& state) {
  return base::parse_safetensors(base::serialize(state.snapshot()), "memory");
}

TEST_F(TrainStates, GoesOnFromASnapshotWithTheSameBits) {
  auto const settings = small_settings();
  auto unbroken = make(settings);
  for (int i = 0; i < 3; ++i) step(*unbroken);
  unbroken->settle();
  EXPECT_TRUE(unbroken->has_pending_gradients());
  unbroken->fold_pending_gradients();
  auto const saved = through_a_file(*unbroken);
  for (int i = 0; i < 3; ++i) step(*unbroken);

  auto resumed = make(settings);
  step(*resumed);  // whatever it had done before is replaced
  resumed->settle();
  resumed->restore(saved);
  for (int i = 0; i < 3; ++i) step(*resumed);

  unbroken->settle();
  resumed->settle();
  EXPECT_EQ(resumed->position.updates, unbroken->position.updates);
  unbroken->fold_pending_gradients();
  resumed->fold_pending_gradients();
  expect_same_bits(resumed->snapshot(), unbroken->snapshot());
}

TEST_F(TrainStates, TheAveragedNetworkComputesWithTheAverages) {
  auto state = make(small_settings());
  for (int i = 0; i < 4; ++i) step(*state);
  auto const live = state->network().state();
  auto const averaged = state->ema_network().state();
  auto const w = base::find_tensor(live, "model.0.conv.weight");
  auto const e = base::find_tensor(averaged, "model.0.conv.weight");
  EXPECT_FALSE(w.equal(e));
  EXPECT_LT((w - e).abs().max().item<float>(), 0.01f);
  EXPECT_FALSE(base::find_tensor(averaged, "model.0.bn.running_mean")
                   .equal(base::find_tensor(live, "model.0.bn.running_mean")));
}

TEST_F(TrainStates, ABadBatchIsSkippedEverywhereAndCounted) {
  auto settings = small_settings();
  settings.nominal_batch = 0;
  auto state = make(settings);
  step(*state);
  state->settle();
  auto const before = through_a_file(*state);
  data::Batch bad = batch_of(1, *communicator_, 64);
  if (communicator_->rank() == 0) {
    bad.boxes = at::full_like(bad.boxes, std::numeric_limits<float>::quiet_NaN());
    auto weight = base::find_tensor(state->network().state(), "model.23.cv3.0.2.bias");
    at::NoGradGuard const no_grad;
    weight.fill_(std::numeric_limits<float>::infinity());
  }
  state->step(std::span(&bad, 1), false, timers_);
  state->settle();
  EXPECT_EQ(state->sums.skipped_updates, 1);
  auto const now = base::find_tensor(state->network().state(), "model.0.conv.weight");
  EXPECT_TRUE(now.equal(base::find_tensor(before.tensors, "weights.model.0.conv.weight")));
  for (auto const& entry : state->ema_network().state()) {
    if (entry.tensor.is_floating_point()) {
      EXPECT_TRUE(at::isfinite(entry.tensor).all().item<bool>()) << entry.name;
    }
  }
}

TEST_F(TrainStates, ARunOfBadStepsEndsAsDiverged) {
  auto settings = small_settings();
  settings.nominal_batch = 0;
  auto state = make(settings);
  at::NoGradGuard guard;
  base::find_tensor(state->network().state(), "model.0.bn.bias")
      .fill_(std::numeric_limits<float>::quiet_NaN());
  at::AutoGradMode const grad(true);
  base::ExitCode code = base::ExitCode::done;
  for (int i = 0; i < 20 && code == base::ExitCode::done; ++i) {
    try {
      data::Batch const batch = batch_of(0, *communicator_, 64);
      state->step(std::span(&batch, 1), false, timers_);
    } catch (base::Error const& error) {
      code = error.code();
    }
  }
  EXPECT_EQ(code, base::ExitCode::diverged);
}

}  // namespace
}  // namespace yolohpc::train
