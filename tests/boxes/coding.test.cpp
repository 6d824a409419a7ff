// Anchor points and box coding, by hand on small maps.

#include "yolohpc/boxes/coding.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/boxes/anchors.hpp"

#include "support/golden.hpp"

namespace yolohpc::boxes {
namespace {

// Level by level, row by row, centres of cells.
TEST(AnchorPoints, GoRowByRow) {
  auto const anchors = make_anchor_points({{2, 3, 8}, {1, 2, 16}}, at::kCPU);
  auto const x = at::tensor({0.5f, 1.5f, 2.5f, 0.5f, 1.5f, 2.5f, 0.5f, 1.5f});
  auto const y = at::tensor({0.5f, 0.5f, 0.5f, 1.5f, 1.5f, 1.5f, 0.5f, 0.5f});
  auto const strides = at::tensor({8.f, 8.f, 8.f, 8.f, 8.f, 8.f, 16.f, 16.f});
  EXPECT_TRUE(anchors.points.equal(at::stack({x, y})));
  EXPECT_TRUE(anchors.strides_px.equal(strides));
}

// Logits that leave one bin give its number; equal logits give the middle; sides lie side by side.
TEST(ExpectedDistances, AreMeansOfTheBins) {
  constexpr std::int64_t bins = 4;
  auto logits = at::zeros({1, 4 * bins, 1});
  for (std::int64_t side = 0; side < 3; ++side) logits[0][side * bins + side] = 100;
  auto const distances = expected_distances(logits, bins);
  testing::expect_close(distances.flatten(), at::tensor({0.f, 1.f, 2.f, 1.5f}), 1e-6, 1e-6,
                        "distances");
}

TEST(Corners, SurroundThePoint) {
  auto const points = at::tensor({10.f, 20.f}).view({2, 1});
  auto const distances = at::tensor({1.f, 2.f, 3.f, 4.f}).view({1, 4, 1});
  auto const corners = corners_from_distances(distances, points);
  EXPECT_TRUE(corners.flatten().equal(at::tensor({9.f, 18.f, 13.f, 24.f})));
  EXPECT_TRUE(distances_from_corners(corners, points).equal(distances));
}

TEST(Corners, ScaleWidthAndHeightOnTheirOwn) {
  auto const box = at::tensor({0.5f, 0.25f, 0.5f, 0.125f}).view({1, 1, 4});
  auto const corners = corners_px_from_normalised(box, 64, 128);
  EXPECT_TRUE(corners.flatten().equal(at::tensor({32.f, 12.f, 96.f, 20.f})));
}

}  // namespace
}  // namespace yolohpc::boxes
