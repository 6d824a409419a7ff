#include "yolohpc/optim/clip.hpp"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::optim {
namespace {

// 3, 4 and 12: norm 13 over all tensors together.
TEST(GradientClipper, ScalesTheGlobalNormDownToTheLimit) {
  auto a = at::tensor({3.0f, 0.0f, 4.0f});
  auto b = at::tensor({-12.0f});
  GradientClipper const clipper({a, b}, 6.5);
  auto const result = clipper.clip_in_place(clipper.square_sum());
  EXPECT_DOUBLE_EQ(result.norm.item<double>(), 13.0);
  EXPECT_EQ(result.found_inf.item<float>(), 0.0f);
  EXPECT_NEAR(a[0].item<double>(), 1.5, 1e-6);
  EXPECT_NEAR(b[0].item<double>(), -6.0, 2e-6);
}

TEST(GradientClipper, LeavesSmallGradientsAloneBitForBit) {
  auto const gradient = testing::formula_state("g.bias", {1000}, 0);
  auto clipped = gradient.clone();
  GradientClipper const clipper({clipped}, 100.0);
  clipper.clip_in_place(clipper.square_sum());
  EXPECT_TRUE(at::equal(clipped, gradient));
}

// spec/golden.md section 7: no trajectory shows the 1e-6 in max / (norm + 1e-6). Norms next to it
// do.
TEST(GradientClipper, AddsItsEpsilonToTheNorm) {
  auto gradient = at::tensor({2e-6f});
  GradientClipper const clipper({gradient}, 1.5e-6);
  clipper.clip_in_place(clipper.square_sum());
  EXPECT_NEAR(gradient.item<double>(), 2e-6 * 1.5e-6 / 3e-6, 1e-12);
}

TEST(GradientClipper, FlagsWhatIsNotFinite) {
  for (float const bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    auto gradient = at::ones({100000});
    gradient[99999] = bad;
    GradientClipper const clipper({at::ones({3}), gradient}, 10.0);
    EXPECT_EQ(clipper.clip_in_place(clipper.square_sum()).found_inf.item<float>(), 1.0f) << bad;
  }
}

// Half a million positive terms: a single float32 accumulator would be off by far more than the
// bound.
TEST(GradientClipper, NormIsAccurateAndHardlyDependsOnTheCut) {
  auto const gradient = testing::formula_state("long.bias", {500000}, 0).abs_();
  double const exact = gradient.to(at::kDouble).square().sum().item<double>();
  GradientClipper const whole({gradient}, 10.0);
  GradientClipper const cut({gradient.narrow(0, 0, 12345), gradient.narrow(0, 12345, 487655)},
                            10.0);
  EXPECT_NEAR(whole.square_sum().item<double>() / exact, 1.0, 1e-6);
  EXPECT_NEAR(cut.square_sum().item<double>() / exact, 1.0, 1e-6);
}

// What two ranks with half the gradient each do: add the square sums, then decide the same.
TEST(GradientClipper, ShardsClipAsTheWhole) {
  auto left = at::tensor({3.0f});
  auto right = at::tensor({4.0f});
  GradientClipper const first({left}, 1.0);
  GradientClipper const second({right}, 1.0);
  auto const sum = first.square_sum() + second.square_sum();
  first.clip_in_place(sum);
  second.clip_in_place(sum);
  EXPECT_NEAR(left.item<double>(), 0.6, 1e-6);
  EXPECT_NEAR(right.item<double>(), 0.8, 1e-6);
}

TEST(GradientClipper, RefusesWhatItCannotClip) {
  EXPECT_THROW(GradientClipper({}, 10.0), base::Error);
  EXPECT_THROW(GradientClipper({at::ones({3})}, 0.0), base::Error);
}

TEST(UndoIf, RestoresAfterABadStepOnly) {
  auto const before = at::tensor({1.0f, 2.0f});
  auto live = at::full({2}, std::numeric_limits<float>::quiet_NaN());
  undo_if_in_place(live, before, at::ones({}));
  EXPECT_TRUE(at::equal(live, before));
  live.fill_(5.0f);
  undo_if_in_place(live, before, at::zeros({}));
  EXPECT_TRUE(at::equal(live, at::full({2}, 5.0f)));
}

}  // namespace
}  // namespace yolohpc::optim
