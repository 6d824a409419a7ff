// Synchronised batch norm on parts of a batch against the framework's own on the whole batch.
#include "yolohpc/parallel/sync_batch_norm.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/comm/world.hpp"

#include "support/golden.hpp"

namespace yolohpc::parallel {
namespace {

constexpr std::int64_t channels = 5;
constexpr SyncNormSettings settings{0.03, 1e-3};
// float32 sums of 10^2 to 10^3 terms; the exact result is not representable either.
constexpr double rtol = 1e-5;
constexpr double atol = 1e-5;

at::Tensor wave(at::IntArrayRef sizes, double speed) {
  std::int64_t numel = 1;
  for (auto const extent : sizes) numel *= extent;
  return (at::sin(at::arange(numel, at::kDouble) * speed) * 3 + 7).to(at::kFloat).reshape(sizes);
}

SyncNormState fresh_state() {
  return {(wave({channels}, 0.3) * 0.2).requires_grad_(true),
          wave({channels}, 0.9).requires_grad_(true), at::zeros({channels}), at::ones({channels})};
}

class SyncBatchNormTest : public ::testing::Test {
 protected:
  // Unequal parts: rank r has r + 1 images.
  std::int64_t first_image(int rank) const { return rank * (rank + 1) / 2; }
  std::int64_t all_images() const { return first_image(world_.size()); }
  at::Tensor part_of(at::Tensor const& whole) const {
    return whole.narrow(0, first_image(world_.rank()), world_.rank() + 1);
  }
  comm::World world_;
  std::unique_ptr<comm::Communicator> communicator_ = comm::make_mpi_communicator(world_);
};

TEST_F(SyncBatchNormTest, EqualsBatchNormOfTheWholeBatch) {
  auto const whole_in = wave({all_images(), channels, 4, 3}, 0.37).requires_grad_(true);
  auto const slope = wave({all_images(), channels, 4, 3}, 1.7);
  auto const oracle = fresh_state();
  auto const whole_out =
      at::batch_norm(whole_in, oracle.weight, oracle.bias, oracle.running_mean, oracle.running_var,
                     true, settings.momentum, settings.epsilon, false);
  (whole_out * slope).sum().backward();

  auto const part_in =
      part_of(whole_in.detach()).clone(at::MemoryFormat::ChannelsLast).requires_grad_(true);
  auto const state = fresh_state();
  auto const part_out = sync_batch_norm(part_in, state, settings, *communicator_);
  (part_out * part_of(slope)).sum().backward();
  communicator_->all_reduce_in_place(state.weight.grad(), comm::ReduceOp::sum);
  communicator_->all_reduce_in_place(state.bias.grad(), comm::ReduceOp::sum);

  testing::expect_close(part_out, part_of(whole_out), rtol, atol, "output");
  testing::expect_close(part_in.grad(), part_of(whole_in.grad()), rtol, atol, "input gradient");
  testing::expect_close(state.weight.grad(), oracle.weight.grad(), rtol, 1e-3, "weight gradient");
  testing::expect_close(state.bias.grad(), oracle.bias.grad(), rtol, 1e-3, "bias gradient");
  testing::expect_close(state.running_mean, oracle.running_mean, rtol, atol, "running mean");
  testing::expect_close(state.running_var, oracle.running_var, rtol, atol, "running variance");
}

// The mean is a thousand times the spread: squares subtracted in float32 would leave no digit of
// the variance.
TEST_F(SyncBatchNormTest, LargeMeanDoesNotDrownTheVariance) {
  auto const whole = wave({all_images(), channels, 8, 8}, 0.37) + 3000;
  auto const state = fresh_state();
  sync_batch_norm(part_of(whole), state, {1.0, settings.epsilon}, *communicator_);
  auto const expected = whole.to(at::kDouble).var(at::IntArrayRef{0, 2, 3}).to(at::kFloat);
  testing::expect_close(state.running_var, expected, 1e-3, 0, "running variance");
}

TEST_F(SyncBatchNormTest, HalfPrecisionKeepsItsTypeAndRunningStatisticsAreOptional) {
  auto state = fresh_state();
  state.running_mean.reset();
  state.running_var.reset();
  auto const whole = wave({all_images(), channels, 4, 4}, 0.37);
  auto const expected = sync_batch_norm(part_of(whole), state, settings, *communicator_);
  auto const half = part_of(whole).to(at::kBFloat16).requires_grad_(true);
  auto const output = sync_batch_norm(half, state, settings, *communicator_);
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
  output.sum().backward();
  EXPECT_EQ(half.grad().scalar_type(), at::kBFloat16);
  testing::expect_close(output.to(at::kFloat), expected.detach(), 2e-2, 2e-2, "bfloat16 output");
}

TEST_F(SyncBatchNormTest, OneValuePerChannelIsRefused) {
  if (world_.size() > 1) GTEST_SKIP() << "skipped: several ranks have several values";
  EXPECT_THROW(
      sync_batch_norm(at::ones({1, channels, 1, 1}), fresh_state(), settings, *communicator_),
      base::Error);
}

}  // namespace
}  // namespace yolohpc::parallel
