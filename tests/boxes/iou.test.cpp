// Complete IoU: values by hand, its gradient, and what the fixtures cannot tell apart.

#include "yolohpc/boxes/iou.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::boxes {
namespace {

at::Tensor corners(std::vector<double> const& values) {
  return at::tensor(values, at::kDouble).view({-1, 4});
}

float ciou(std::vector<double> const& a, std::vector<double> const& b) {
  return complete_iou(corners(a).to(at::kFloat), corners(b).to(at::kFloat)).item<float>();
}

// Crossed 2x1 and 1x2 boxes: iou = 1/3, d^2/c^2 = 1/16, v = 0.167826, alpha = 0.201112.
TEST(CompleteIou, CountsTheAspectTerm) {
  EXPECT_NEAR(ciou({0, 0, 2, 1}, {0, 0, 1, 2}), 0.237082, 2e-6);
}

// One centre, one aspect: only iou = 4 / 16 is left.
TEST(CompleteIou, IsTheIouOfConcentricBoxes) {
  EXPECT_NEAR(ciou({2, 2, 6, 6}, {3, 3, 5, 5}), 0.25, 1e-6);
}

// Unit boxes 3 apart: iou = 0, d^2 = 9, c^2 = 16 + 1.
TEST(CompleteIou, IsNegativeForDistantBoxes) {
  EXPECT_NEAR(ciou({0, 0, 1, 1}, {3, 0, 4, 1}), -9.0 / 17.0, 1e-6);
}

// Two empty boxes at one place: the 1e-7 of the heights keep 0 / 0 away.
TEST(CompleteIou, IsFiniteForEmptyBoxes) {
  EXPECT_TRUE(std::isfinite(ciou({0, 0, 0, 0}, {0, 0, 0, 0})));
  auto const a = at::zeros({1, 4}).set_requires_grad(true);
  complete_iou(a, at::zeros({1, 4})).sum().backward();
  EXPECT_TRUE(a.grad().isfinite().all().item<bool>());
}

// 1e-7 stands on the heights only. With w = h = 1e-7 the angle of atan(w / (h + 1e-7)) is
// atan(1/2); with it on the widths too, or on neither, it would be atan(1).
TEST(AspectAngle, AddsToTheHeightAlone) {
  auto const angle = aspect_angle(split_corners(corners({0, 0, 1e-7, 1e-7})));
  EXPECT_NEAR(angle.item<double>(), std::atan(0.5), 1e-9);
}

// The formula has no order of boxes beyond rounding.
TEST(CompleteIou, IsSymmetric) {
  EXPECT_NEAR(ciou({0, 0, 4, 3}, {1, 1, 3, 6}), ciou({1, 1, 3, 6}, {0, 0, 4, 3}), 1e-7);
}

// alpha is a constant of the backward pass: the gradient is that of iou - d^2/c^2 - alpha v with
// alpha held. Central differences of the formula with alpha fixed at its value.
TEST(CompleteIou, HoldsAlphaConstantInItsGradient) {
  auto const b = corners({0, 0, 1, 2});
  auto const a = corners({0.1, -0.2, 2, 1.1}).set_requires_grad(true);
  complete_iou(a, b).sum().backward();
  constexpr double pi = 3.14159265358979323846;
  auto const parts = [&](at::Tensor const& box) {
    double const* p = box.data_ptr<double>();
    double const* q = b.data_ptr<double>();
    double const inter = std::max(std::min(p[2], q[2]) - std::max(p[0], q[0]), 0.0) *
                         std::max(std::min(p[3], q[3]) - std::max(p[1], q[1]), 0.0);
    double const wa = p[2] - p[0], ha = p[3] - p[1], wb = q[2] - q[0], hb = q[3] - q[1];
    double const iou = inter / (wa * ha + wb * hb - inter);
    double const cw = std::max(p[2], q[2]) - std::min(p[0], q[0]);
    double const ch = std::max(p[3], q[3]) - std::min(p[1], q[1]);
    double const dx = (q[0] + q[2] - p[0] - p[2]) / 2, dy = (q[1] + q[3] - p[1] - p[3]) / 2;
    double const v = 4 / (pi * pi) * std::pow(std::atan(wb / hb) - std::atan(wa / ha), 2);
    return std::array<double, 3>{iou, (dx * dx + dy * dy) / (cw * cw + ch * ch), v};
  };
  auto const at_a = parts(a.detach());
  double const alpha = at_a[2] / (1 - at_a[0] + at_a[2]);
  constexpr double step = 1e-5;
  for (std::int64_t i = 0; i < 4; ++i) {
    auto shifted = [&](double by) {
      auto moved = a.detach().clone();
      moved[0][i] += by;
      auto const [iou, distance, v] = parts(moved);
      return iou - distance - alpha * v;
    };
    double const expected = (shifted(step) - shifted(-step)) / (2 * step);
    EXPECT_NEAR(a.grad()[0][i].item<double>(), expected, 1e-5) << "corner " << i;
  }
}

// (N, 1, 4) against (M, 4) gives all pairs.
TEST(CompleteIou, BroadcastsToAllPairs) {
  auto const a = at::tensor({0.f, 0.f, 2.f, 1.f, 0.f, 0.f, 4.f, 4.f}).view({2, 1, 4});
  auto const b =
      at::tensor({0.f, 0.f, 1.f, 2.f, 1.f, 1.f, 3.f, 3.f, 0.f, 0.f, 4.f, 4.f}).view({3, 4});
  auto const all = complete_iou(a, b);
  ASSERT_EQ(all.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_NEAR(all[0][0].item<float>(), 0.237082, 2e-6);
  EXPECT_NEAR(all[1][1].item<float>(), 0.25, 1e-6);
  EXPECT_NEAR(all[1][2].item<float>(), 1, 1e-6);
}

std::string message_of(at::Tensor const& a, at::Tensor const& b) {
  try {
    complete_iou(a, b);
  } catch (base::Error const& error) {
    return error.what();
  }
  return "";
}

TEST(CompleteIou, RefusesOtherShapesAndTypes) {
  EXPECT_NE(message_of(at::zeros({2, 5}), at::zeros({2, 4})).find("[2, 5]"), std::string::npos);
  auto const half = at::zeros({2, 4}).to(at::kHalf);
  EXPECT_NE(message_of(at::zeros({2, 4}), half).find("Half"), std::string::npos);
}

}  // namespace
}  // namespace yolohpc::boxes
