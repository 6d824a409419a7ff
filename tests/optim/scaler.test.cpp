#include "yolohpc/optim/scaler.hpp"

#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::optim {
namespace {

ScalerSettings quick() {
  return {1024, 2.0, 0.5, 3};
}

TEST(LossScaler, DividesByTheScaleAndFindsNonFiniteGradients) {
  LossScaler const scaler(quick(), at::kCPU);
  auto gradient = at::full({70}, 2048.0f);
  EXPECT_EQ(scaler.unscale_in_place({gradient}).item<float>(), 0.0f);
  EXPECT_TRUE(at::equal(gradient, at::full({70}, 2.0f)));
  for (float const bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto spoiled = at::ones({70});
    spoiled[69] = bad;
    EXPECT_EQ(scaler.unscale_in_place({gradient, spoiled}).item<float>(), 1.0f);
  }
}

// Good, good, good: doubled; bad: halved and the count starts again.
TEST(LossScaler, GrowsAfterGoodStepsAndBacksOffAtOnce) {
  LossScaler scaler(quick(), at::kCPU);
  auto const good = at::zeros({});
  auto const bad = at::ones({});
  std::vector<float> scales;
  for (auto const& found : {good, good, good, good, good, bad, good, good, good}) {
    scaler.update(found);
    scales.push_back(scaler.scale().item<float>());
  }
  EXPECT_EQ(scales, (std::vector<float>{1024, 1024, 2048, 2048, 2048, 1024, 1024, 1024, 2048}));
}

TEST(LossScaler, GoesOnFromSavedState) {
  LossScaler first(quick(), at::kCPU);
  first.update(at::ones({}));
  first.update(at::zeros({}));
  first.update(at::zeros({}));
  LossScaler second(quick(), at::kCPU);
  second.load_state(first.state());
  EXPECT_EQ(second.scale().item<float>(), 512.0f);
  second.update(at::zeros({}));
  EXPECT_EQ(second.scale().item<float>(), 1024.0f);
  EXPECT_EQ(first.scale().item<float>(), 512.0f) << "state() shares memory";
  EXPECT_THROW(second.load_state({}), base::Error);
}

TEST(LossScaler, ChecksItsSettings) {
  EXPECT_THROW(LossScaler({0, 2, 0.5, 2000}, at::kCPU), base::Error);
  EXPECT_THROW(LossScaler({1, 0.5, 0.5, 2000}, at::kCPU), base::Error);
  EXPECT_THROW(LossScaler({1, 2, 1.5, 2000}, at::kCPU), base::Error);
  EXPECT_THROW(LossScaler({1, 2, 0.5, 0}, at::kCPU), base::Error);
}

}  // namespace
}  // namespace yolohpc::optim
