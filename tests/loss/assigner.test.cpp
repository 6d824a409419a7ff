// The assigner's rules on cases small enough to solve by hand.

#include "yolohpc/loss/assigner.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/philox.hpp"

#include "support/golden.hpp"

namespace yolohpc::loss {
namespace {

using Rows = std::vector<std::vector<float>>;

at::Tensor table(Rows const& rows) {
  std::vector<at::Tensor> tensors;
  for (auto const& row : rows) tensors.push_back(at::tensor(row));
  return at::stack(tensors);
}

/// One image. \param points  x y; \param predicted  corners of each point; \param boxes  true
/// corners; the class of box g is g, and \param scores  holds the logits of each class at each
/// point
AssignerInput image(Rows const& points, Rows const& predicted, Rows const& boxes,
                    Rows const& scores) {
  auto const count = static_cast<std::int64_t>(boxes.size());
  return {.predicted_px = table(predicted).t().unsqueeze(0),
          .scores = table(scores).unsqueeze(0),
          .points_px = table(points).t(),
          .boxes_px = table(boxes).unsqueeze(0),
          .labels = at::arange(count).unsqueeze(0),
          .valid = at::ones({1, count}, at::kBool),
          .smallest_side_px = 0};
}

std::vector<std::int64_t> integers(at::Tensor const& t) {
  auto const flat = t.to(at::kLong).flatten().contiguous();
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

constexpr std::int64_t one_pair = 1;  // a turn for each box

// A 4 px box around (16, 16) with points 4 px away: only the floor of 16 px reaches them, and the
// overlap is that with the true box (1), not with the enlarged one (1/16).
TEST(Assigner, EnlargesSmallBoxesInTheCandidateTestAlone) {
  std::vector<float> const small{14, 14, 18, 18};
  auto input = image({{12, 12}, {20, 12}, {12, 20}, {20, 20}, {28, 20}}, {5, small}, {small},
                     {{0, 0, 0, 0, 0}});
  EXPECT_EQ(integers(assign(input).foreground), (std::vector<std::int64_t>{0, 0, 0, 0, 0}));
  input.smallest_side_px = 16;
  auto const got = assign(input);
  EXPECT_EQ(integers(got.foreground), (std::vector<std::int64_t>{1, 1, 1, 1, 0}));
  testing::expect_close(got.weight.flatten(), at::tensor({1.f, 1.f, 1.f, 1.f, 0.f}), 1e-5, 0,
                        "weights");
}

// Width and height are enlarged each on its own.
TEST(Assigner, EnlargesOneSideOfAThinBox) {
  std::vector<float> const thin{0, 15, 64, 17};
  auto input = image({{4, 20}, {60, 9}, {32, 28}}, {3, thin}, {thin}, {{0, 0, 0}});
  input.smallest_side_px = 16;
  EXPECT_EQ(integers(assign(input).foreground), (std::vector<std::int64_t>{1, 1, 0}));
}

// A point on the border is outside.
TEST(Assigner, WantsPointsStrictlyInside) {
  std::vector<float> const box{8, 8, 24, 24};
  auto const input =
      image({{8, 16}, {24, 16}, {16, 8}, {16, 24}, {16, 16}}, {5, box}, {box}, {{0, 0, 0, 0, 0}});
  EXPECT_EQ(integers(assign(input).foreground), (std::vector<std::int64_t>{0, 0, 0, 0, 1}));
}

// Concentric squares: o = 0.64 and 0.81, equal scores, so t = (0.64 / 0.81)^6 0.81 and 0.81.
TEST(Assigner, ScalesTheWeightsOfABox) {
  auto const input =
      image({{9, 10}, {11, 10}}, {{2, 2, 18, 18}, {1, 1, 19, 19}}, {{0, 0, 20, 20}}, {{-1, -1}});
  auto const expected = at::tensor(std::vector<double>{std::pow(0.64 / 0.81, 6) * 0.81, 0.81});
  testing::expect_close(assign(input).weight.flatten(), expected.to(at::kFloat), 1e-5, 0,
                        "weights");
}

/// Boxes 0 and 1 select point 0; box 2 selects point 1 but overlaps most with point 0.
AssignerInput contested() {
  return image({{9, 10}, {11, 10}}, {{0, 0, 20, 20}, {1, 1, 19, 19}},
               {{0, 0, 18, 20}, {0, 0, 20, 16}, {0, 0, 20, 20}}, {{9, -9}, {9, -9}, {-20, 9}});
}

// Rule 4: a point that two boxes selected goes to the best overlap of all boxes, selected or not.
TEST(Assigner, GivesAContestedPointToTheLargestOverlap) {
  auto const got = assign(contested(), {.top_k = 1, .pairs_at_once = 0});
  EXPECT_EQ(integers(got.box_index), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(integers(got.label), (std::vector<std::int64_t>{2, 2}));
  EXPECT_GT(got.weight[0][0].item<float>(), 0);
  auto const in_turns = assign(contested(), {.top_k = 1, .pairs_at_once = one_pair});
  EXPECT_TRUE(in_turns.box_index.equal(got.box_index));
  EXPECT_TRUE(in_turns.weight.equal(got.weight));
}

// A point that one box alone selected stays there, however well another overlaps.
TEST(Assigner, LeavesAnUncontestedPointWithItsBox) {
  auto input = contested();
  input.valid[0][1] = false;
  auto const got = assign(input, {.top_k = 1, .pairs_at_once = 0});
  EXPECT_EQ(integers(got.box_index), (std::vector<std::int64_t>{0, 2}));
}

// Twice the same box: the first one keeps all points.
TEST(Assigner, BreaksTiesByTheLowestBox) {
  std::vector<float> const box{0, 0, 20, 20};
  auto input = image({{9, 10}, {11, 10}}, {{0, 0, 20, 20}, {1, 1, 19, 19}}, {box, box, box},
                     {{0, 0}, {0, 0}, {0, 0}});
  for (std::int64_t const pairs : {std::int64_t{0}, one_pair, 4 * one_pair}) {
    auto const got = assign(input, {.top_k = 10, .pairs_at_once = pairs});
    EXPECT_EQ(integers(got.foreground), (std::vector<std::int64_t>{1, 1}));
    EXPECT_EQ(integers(got.box_index), (std::vector<std::int64_t>{0, 0}));
  }
}

// Box 1 has no point of positive metric: what fills its list changes nothing for box 0.
TEST(Assigner, NeverSelectsPointsOfMetricZero) {
  std::vector<float> const seen{0, 0, 20, 20};
  std::vector<float> const unseen{0, 0, 400,
                                  400};  // contains the points, overlaps no prediction well
  Rows const predicted{{0, 0, 20, 20}, {500, 500, 520, 520}};
  Rows const points{{9, 10}, {200, 200}};
  auto const alone = assign(image(points, predicted, {seen}, {{0, 0}}));
  auto const both = assign(image(points, predicted, {seen, unseen}, {{0, 0}, {0, 0}}));
  EXPECT_EQ(integers(both.foreground), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(integers(both.box_index), (std::vector<std::int64_t>{0, 0}));
  EXPECT_TRUE(both.weight.equal(alone.weight));
}

// The class whose score counts is the box's own.
TEST(Assigner, RanksPointsByTheScoreOfTheBoxClass) {
  std::vector<float> const box{0, 0, 20, 20};
  auto input = image({{9, 10}, {11, 10}}, {box, box}, {box}, {{5, -5}, {-5, 5}});
  EXPECT_EQ(integers(assign(input, {.top_k = 1, .pairs_at_once = 0}).foreground),
            (std::vector<std::int64_t>{1, 0}));
  input.labels.fill_(1);
  EXPECT_EQ(integers(assign(input, {.top_k = 1, .pairs_at_once = 0}).foreground),
            (std::vector<std::int64_t>{0, 1}));
}

TEST(Assigner, RefusesShapesThatDoNotBelongTogether) {
  auto input = contested();
  input.labels = input.labels.narrow(1, 0, 2);
  try {
    assign(input);
    FAIL() << "no error";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("labels [1, 2]"), std::string::npos) << error.what();
  }
}

/// Random squares of 8 to 72 px on a 640 px image with the three usual levels of points.
AssignerInput dense_image(std::int64_t box_count) {
  base::Philox random(0, 0, 0, base::Purpose::test);
  auto const square = [&](double x, double y) {
    auto const half = static_cast<float>(random.uniform(4, 36));
    auto const cx = static_cast<float>(x);
    auto const cy = static_cast<float>(y);
    return std::vector<float>{cx - half, cy - half, cx + half, cy + half};
  };
  Rows points, predicted, boxes;
  for (int const stride : {8, 16, 32}) {
    for (int i = 0; i < 640 / stride * (640 / stride); ++i) {
      float const x = (static_cast<float>(i % (640 / stride)) + 0.5f) * static_cast<float>(stride);
      float const y = (static_cast<float>(i / (640 / stride)) + 0.5f) * static_cast<float>(stride);
      points.push_back({x, y});
      predicted.push_back(square(x, y));
    }
  }
  for (std::int64_t g = 0; g < box_count; ++g) {
    boxes.push_back(square(random.uniform(40, 600), random.uniform(40, 600)));
  }
  auto const point_count = static_cast<std::int64_t>(points.size());
  return {.predicted_px = table(predicted).t().contiguous().unsqueeze(0),
          .scores = at::zeros({1, 3, point_count}),
          .points_px = table(points).t().contiguous(),
          .boxes_px = table(boxes).unsqueeze(0),
          .labels = at::arange(box_count).remainder(3).unsqueeze(0),
          .valid = at::ones({1, box_count}, at::kBool),
          .smallest_side_px = 16};
}

std::int64_t peak_memory_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// Held at once, 5 000 x 8 400 pairs would be ten tensors of 160 MiB.
TEST(DenseAssigner, HoldsABoundedPartOfThePairs) {
  auto const input = dense_image(5000);
  auto const before_mib = peak_memory_mib();
  auto const got = assign(input);
  EXPECT_GT(got.foreground.sum().item<std::int64_t>(), 4000);
  EXPECT_LT(peak_memory_mib() - before_mib, 400);
}

TEST(DenseAssigner, GivesTheSameInTurnsAsAtOnce) {
  auto const input = dense_image(300);
  auto const pairs = input.boxes_px.size(1) * input.scores.size(2);
  auto const at_once = assign(input, {.top_k = 10, .pairs_at_once = pairs});
  auto const in_turns = assign(input, {.top_k = 10, .pairs_at_once = pairs / 7});
  EXPECT_TRUE(in_turns.foreground.equal(at_once.foreground));
  EXPECT_TRUE(in_turns.box_index.equal(at_once.box_index));
  EXPECT_TRUE(in_turns.weight.equal(at_once.weight));
}

}  // namespace
}  // namespace yolohpc::loss
