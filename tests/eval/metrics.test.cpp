#include "yolohpc/eval/metrics.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::eval {
namespace {

constexpr double tolerance = 1e-6;  // of the fixture

struct FixtureImage {
  std::vector<FoundBox> found;
  std::vector<TrueBox> truth;
  std::vector<std::string> hits;  ///< ten digits 0 or 1 each
};

std::vector<FixtureImage> fixture_images(nlohmann::json const& fixture) {
  std::vector<FixtureImage> images;
  for (auto const& entry : fixture.at("images")) {
    auto& image = images.emplace_back();
    for (std::size_t i = 0; i < entry.at("gt_boxes").size(); ++i) {
      image.truth.push_back({entry.at("gt_boxes")[i].get<std::array<float, 4>>(),
                             static_cast<std::int32_t>(entry.at("gt_cls")[i].get<double>())});
    }
    for (std::size_t i = 0; i < entry.at("pred_boxes").size(); ++i) {
      image.found.push_back({entry.at("pred_boxes")[i].get<std::array<float, 4>>(),
                             entry.at("conf")[i].get<float>(),
                             static_cast<std::int32_t>(entry.at("pred_cls")[i].get<double>())});
    }
    image.hits = entry.at("tp").get<std::vector<std::string>>();
  }
  return images;
}

std::string digits(std::uint16_t bits) {
  std::string text;
  for (int t = 0; t < metric_threshold_count; ++t) text += bits >> t & 1 ? '1' : '0';
  return text;
}

TEST(Metrics, FindTheTruePositivesOfTheFixture) {
  for (auto const& image : fixture_images(testing::golden_json("eval_metrics.json"))) {
    auto const hits = true_positives(image.found, image.truth);
    ASSERT_EQ(hits.size(), image.hits.size());
    for (std::size_t i = 0; i < hits.size(); ++i) EXPECT_EQ(digits(hits[i]), image.hits[i]);
  }
}

void expect_near(std::vector<double> const& got, nlohmann::json const& expected,
                 std::string const& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i].get<double>(), tolerance) << what << " " << i;
  }
}

DetectionMetrics fixture_metrics(std::vector<FixtureImage> const& images) {
  DetectionRecords records;
  for (std::size_t i = 0; i < images.size(); ++i) {
    records.add_image(static_cast<std::int64_t>(i), images[i].found, images[i].truth);
  }
  return records.metrics();
}

TEST(Metrics, GiveTheNumbersOfTheFixture) {
  auto const fixture = testing::golden_json("eval_metrics.json");
  auto const got = fixture_metrics(fixture_images(fixture));
  auto const& stable = fixture.at("expected_stable");
  expect_near(got.precision, stable.at("p"), "p");
  expect_near(got.recall, stable.at("r"), "r");
  expect_near(got.f1, stable.at("f1"), "f1");
  ASSERT_EQ(got.ap.size(), stable.at("ap").size());
  for (std::size_t k = 0; k < got.ap.size(); ++k) {
    expect_near({got.ap[k].begin(), got.ap[k].end()}, stable.at("ap")[k], "ap");
  }
  EXPECT_NEAR(got.map50, stable.at("map50").get<double>(), tolerance);
  EXPECT_NEAR(got.map50_95, stable.at("map").get<double>(), tolerance);
  EXPECT_NEAR(got.mean_precision, stable.at("mp").get<double>(), tolerance);
  EXPECT_NEAR(got.mean_recall, stable.at("mr").get<double>(), tolerance);
  // These do not depend on the order of equal confidences.
  auto const& unstable = fixture.at("expected");
  EXPECT_EQ(got.classes, unstable.at("classes").get<std::vector<std::int32_t>>());
  expect_near(got.true_positives, unstable.at("tp"), "tp");
  expect_near(got.false_positives, unstable.at("fp"), "fp");
  EXPECT_NEAR(got.working_confidence, unstable.at("max_f1_index").get<int>() / 999.0, tolerance);
}

TEST(Metrics, SmoothLikeTheFixture) {
  auto const check = testing::golden_json("eval_metrics.json").at("smooth_check");
  auto const input = check.at("input").get<std::vector<double>>();
  expect_near(smoothed(input, check.at("f").get<double>()), check.at("output"), "smooth");
}

FoundBox found(float x, float confidence, std::int32_t class_index = 0) {
  return {{x, 0, x + 10, 10}, confidence, class_index};
}
TrueBox box_at(float x, std::int32_t class_index = 0) {
  return {{x, 0, x + 10, 10}, class_index};
}

// A hit and a miss on one label, then nothing: precision 1 at recall 1, so the area is 1 whatever
// the second one is; a class with a label and no detection halves the mean; one without labels does
// not count.
TEST(Metrics, AverageOverClassesThatHaveLabels) {
  DetectionRecords records;
  records.add_image(0, std::vector{found(0, 0.9f), found(50, 0.5f), found(0, 0.9f, 7)},
                    std::vector{box_at(0), box_at(0, 2)});
  auto const metrics = records.metrics();
  EXPECT_EQ(metrics.classes, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(metrics.ap[1][0], 0);
  // The curve falls from (1, 1) to (1, 0) at recall 1, and the last grid point takes the later
  // value.
  EXPECT_NEAR(metrics.map50, (1 - 0.005) / 2, tolerance);
  EXPECT_NEAR(metrics.map50_95, metrics.map50, tolerance);
}

TEST(Metrics, AreUndefinedWithoutLabels) {
  DetectionRecords records;
  records.add_image(0, std::vector{found(0, 0.9f)}, {});
  auto const metrics = records.metrics();
  EXPECT_FALSE(metrics.is_defined());
  EXPECT_EQ(metrics.map50_95, -1);
}

// A box shifted by 1 of 10 has IoU 9/11; each threshold gives the label to the first that passes
// it. only.
TEST(Metrics, MatchOnceAndByThreshold) {
  auto const hits = true_positives(std::vector{found(1, 0.9f), found(0, 0.8f)},
                                   std::vector{box_at(0), box_at(0, 1)});
  EXPECT_EQ(digits(hits[0]), "1111111000") << "IoU 9/11 passes 0.5 .. 0.8";
  EXPECT_EQ(digits(hits[1]), "0000000111") << "what is left";
}

// The first detection has IoU 9/11 with both labels and takes the first of them up to 0.8. The
// second one, IoU 1 with the first and 2/3 with the second, is left the second label there.
TEST(Metrics, TakeTheFirstOfEqualOverlaps) {
  auto const hits = true_positives(std::vector{found(1, 0.9f), found(0, 0.8f)},
                                   std::vector{box_at(0), box_at(2)});
  EXPECT_EQ(digits(hits[0]), "1111111000");
  EXPECT_EQ(digits(hits[1]), "1111000111");
}

// The confidences of the fixture are heavily tied over images.
TEST(Metrics, GiveTheSameBitsForAnyNumberOfParts) {
  auto const images = fixture_images(testing::golden_json("eval_metrics.json"));
  auto const whole = fixture_metrics(images);
  for (std::size_t const size : {1, 2, 3, 4, 30}) {
    std::vector<DetectionRecords> parts(size);
    for (std::size_t i = 0; i < images.size(); ++i) {
      parts[i % size].add_image(static_cast<std::int64_t>(i), images[i].found, images[i].truth);
    }
    DetectionRecords merged;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      merged.merge(DetectionRecords::from_bytes(part->to_bytes()));
    }
    auto const metrics = merged.metrics();
    EXPECT_EQ(metrics.ap, whole.ap) << size << " parts";
    EXPECT_EQ(metrics.precision, whole.precision);
    EXPECT_EQ(metrics.map50_95, whole.map50_95);
  }
}

}  // namespace
}  // namespace yolohpc::eval
