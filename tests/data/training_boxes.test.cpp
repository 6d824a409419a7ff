#include <limits>

#include <gtest/gtest.h>

#include "yolohpc/data/shard_set.hpp"

namespace yolohpc::data {
namespace {

Annotation box(double x, double y, double w, double h, int class_index = 0, bool is_crowd = false) {
  return {.id = 1,
          .xywh_px = {x, y, w, h},
          .area = w * h,
          .class_index = class_index,
          .is_crowd = is_crowd};
}

// The boxes of case B03 in a picture of 200 x 120: two stick out, one is outside, one is empty.
TEST(TrainingBoxes, AreClippedAndTheVanishedAreCounted) {
  std::vector<Annotation> const given{box(150, 90, 100, 80), box(-10, -10, 30, 30),
                                      box(300, 10, 20, 20), box(10, 10, 0, 30),
                                      box(20, 20, 40, 40)};
  auto const result = training_boxes(given, 200, 120);
  std::vector<TrainingBox> const expected{
      {{150, 90, 200, 120}, 0}, {{0, 0, 20, 20}, 0}, {{20, 20, 60, 60}, 0}};
  EXPECT_EQ(result.boxes, expected);
  EXPECT_EQ(result.clipped, 2);
  EXPECT_EQ(result.outside, 1);
  EXPECT_EQ(result.empty, 1);
  EXPECT_EQ(result.duplicate, 0);
  EXPECT_EQ(result.crowd, 0);
}

TEST(TrainingBoxes, CrowdsAreNoTargets) {
  auto const result =
      training_boxes(std::vector{box(1, 1, 5, 5, 0, true), box(1, 1, 5, 5)}, 10, 10);
  EXPECT_EQ(result.boxes.size(), 1u);
  EXPECT_EQ(result.crowd, 1);
  EXPECT_EQ(result.duplicate, 0);
}

TEST(TrainingBoxes, TheSameBoxOfTheSameClassCountsOnce) {
  auto const result = training_boxes(
      std::vector{box(1, 1, 5, 5), box(2, 1, 5, 5), box(1, 1, 5, 5), box(1, 1, 5, 5, 1)}, 10, 10);
  ASSERT_EQ(result.boxes.size(), 3u);
  EXPECT_EQ(result.duplicate, 1);
  EXPECT_EQ(result.boxes[1].xyxy_px[0], 2);
  EXPECT_EQ(result.boxes[2].class_index, 1);
}

TEST(TrainingBoxes, TouchingTheEdgeFromOutsideIsOutside) {
  EXPECT_EQ(training_boxes(std::vector{box(10, 0, 5, 5), box(-5, 0, 5, 5)}, 10, 10).outside, 2);
  EXPECT_EQ(training_boxes(std::vector{box(0, 0, 10, 10)}, 10, 10).clipped, 0);
  EXPECT_EQ(training_boxes(std::vector{box(0, 0, -3, 4)}, 10, 10).empty, 1);
  double const nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(training_boxes(std::vector{box(nan, 0, 3, 4)}, 10, 10).empty, 1);
}

}  // namespace
}  // namespace yolohpc::data
