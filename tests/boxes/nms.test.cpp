#include "yolohpc/boxes/nms.hpp"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::boxes {
namespace {

/// One anchor of a hand-made prediction: corners in pixels, then the probabilities.
struct Anchor {
  float x1, y1, x2, y2;
  std::vector<float> probabilities;
};

at::Tensor predictions(std::vector<Anchor> const& anchors) {
  auto const rows = static_cast<std::int64_t>(4 + anchors.at(0).probabilities.size());
  auto result = at::zeros({1, rows, static_cast<std::int64_t>(anchors.size())});
  auto view = result.accessor<float, 3>();
  for (std::size_t a = 0; a < anchors.size(); ++a) {
    auto const& anchor = anchors[a];
    view[0][0][a] = (anchor.x1 + anchor.x2) / 2;
    view[0][1][a] = (anchor.y1 + anchor.y2) / 2;
    view[0][2][a] = anchor.x2 - anchor.x1;
    view[0][3][a] = anchor.y2 - anchor.y1;
    for (std::size_t c = 0; c < anchor.probabilities.size(); ++c) {
      view[0][4 + c][a] = anchor.probabilities[c];
    }
  }
  return result;
}

std::vector<std::int64_t> kept_anchors(std::vector<Anchor> const& anchors,
                                       NmsSettings const& settings) {
  auto const kept = non_maximum_suppression(predictions(anchors), settings).at(0).anchor;
  return {kept.const_data_ptr<std::int64_t>(), kept.const_data_ptr<std::int64_t>() + kept.numel()};
}

using Anchors = std::vector<std::int64_t>;

NmsSettings settings_of(nlohmann::json const& arguments) {
  NmsSettings settings;
  settings.multi_label = arguments.value("multi_label", false);
  settings.agnostic = arguments.value("agnostic", false);
  settings.confidence = arguments.at("conf_thres").get<float>();
  settings.iou = arguments.at("iou_thres").get<float>();
  settings.max_detections = arguments.value("max_det", settings.max_detections);
  settings.max_candidates = arguments.value("max_nms", settings.max_candidates);
  return settings;
}

TEST(Nms, GivesTheRowsAndAnchorsOfTheFixture) {
  auto const description = testing::golden_json("nms.json");
  auto const fixture = testing::golden_tensors("nms.safetensors").tensors;
  for (auto const& test : description.at("cases")) {
    auto const name = test.at("name").get<std::string>();
    auto const input = base::find_tensor(fixture, test.value("input", "pred"));
    auto const detections = non_maximum_suppression(input, settings_of(test.at("args")));
    ASSERT_EQ(detections.size(), test.at("kept").size());
    for (std::size_t b = 0; b < detections.size(); ++b) {
      auto const prefix = name + "." + std::to_string(b);
      auto const expected = base::find_tensor(fixture, prefix + ".dets");
      auto const anchor = base::find_tensor(fixture, prefix + ".index");
      ASSERT_EQ(detections[b].rows.sizes(), expected.sizes()) << prefix;
      // Tolerances of the fixture: 1e-4 px; confidence, class and order are exact.
      testing::expect_close(detections[b].rows.narrow(1, 0, 4), expected.narrow(1, 0, 4), 0, 1e-4,
                            prefix);
      EXPECT_TRUE(at::equal(detections[b].rows.narrow(1, 4, 2), expected.narrow(1, 4, 2)))
          << prefix;
      EXPECT_TRUE(at::equal(detections[b].anchor, anchor.to(at::kLong))) << prefix;
    }
  }
}

// 10 x 10 boxes with 5 x 10 shared: inter 50, union 150 is 1/3; a half inside a whole is 1/2
// exactly.
TEST(Nms, KeepsABoxWhoseIouEqualsTheThreshold) {
  std::vector<Anchor> const half_inside = {{0, 0, 10, 10, {0.9f}}, {0, 0, 10, 5, {0.8f}}};
  NmsSettings settings;
  settings.iou = 0.5f;
  EXPECT_EQ(kept_anchors(half_inside, settings), (Anchors{0, 1}));
  settings.iou = std::nextafter(0.5f, 0.0f);
  EXPECT_EQ(kept_anchors(half_inside, settings), (Anchors{0}));
}

// An epsilon of 1e-7 in the denominator would turn the IoU of these 1/64 px boxes, 1/2, into
// 0.4996, and that of identical boxes into less than 1.
TEST(Nms, HasNoEpsilonInTheDenominator) {
  float const side = 1.0f / 64;
  NmsSettings settings;
  settings.iou = 0.4999f;
  EXPECT_EQ(kept_anchors({{0, 0, side, side, {0.9f}}, {0, 0, side, side / 2, {0.8f}}}, settings),
            (Anchors{0}));
}

// 0.001 as a double lies below 0.001 as a float: a comparison in double would let the float pass.
TEST(Nms, ComparesConfidencesAsFloat32AndStrictly) {
  float const limit = 0.001f;
  float const above = std::nextafter(limit, 1.0f);
  ASSERT_GT(static_cast<double>(limit), 0.001);
  for (bool const multi_label : {false, true}) {
    NmsSettings settings;
    settings.multi_label = multi_label;
    EXPECT_EQ(kept_anchors({{0, 0, 10, 10, {limit, 0}}, {50, 0, 60, 10, {above, 0}}}, settings),
              (Anchors{1}));
  }
}

TEST(Nms, TakesEqualScoresInOrderOfAnchorThenClass) {
  std::vector<Anchor> const anchors = {
      {100, 0, 110, 10, {0.5f, 0.25f}}, {0, 0, 10, 10, {0.5f, 0.5f}}, {1, 0, 11, 10, {0, 0.5f}}};
  NmsSettings settings;
  auto const rows = non_maximum_suppression(predictions(anchors), settings).at(0);
  // Anchor 2 class 1 falls to the equal score of anchor 1 class 1 (IoU 9/11), which comes earlier.
  EXPECT_TRUE(at::equal(rows.anchor, at::tensor({0, 1, 1, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(rows.rows.select(1, 5), at::tensor({0.f, 0.f, 1.f, 1.f})));
}

TEST(Nms, CutsCandidatesByConfidenceThenOrder) {
  std::vector<Anchor> anchors;
  for (int i = 0; i < 6; ++i) {
    float const x = 20.0f * static_cast<float>(i);
    anchors.push_back({x, 0, x + 10, 10, {i == 4 ? 0.75f : 0.5f}});
  }
  NmsSettings settings;
  settings.max_candidates = 3;
  EXPECT_EQ(kept_anchors(anchors, settings), (Anchors{4, 0, 1}));
}

TEST(Nms, LetsOnlyAgnosticClassesCompete) {
  std::vector<Anchor> const same_place = {{0, 0, 10, 10, {0.9f, 0}}, {0, 0, 10, 10, {0, 0.8f}}};
  NmsSettings settings;
  EXPECT_EQ(kept_anchors(same_place, settings), (Anchors{0, 1}));
  settings.agnostic = true;
  EXPECT_EQ(kept_anchors(same_place, settings), (Anchors{0}));
}

// Class 79 is shifted by 606,720 px, where float32 has steps of 1/16 px: 0.03 px vanish there, and
// the IoU becomes that of boxes 1 and 1 px wide instead of 1 and 1.03.
TEST(Nms, ComparesHighClassesOnRoundedCoordinates) {
  auto anchor = [](float width, std::size_t class_index, float score) {
    Anchor result{0, 0, width, 1, std::vector<float>(80, 0)};
    result.probabilities[class_index] = score;
    return result;
  };
  NmsSettings settings;
  settings.iou = 0.98f;
  EXPECT_EQ(kept_anchors({anchor(1, 0, 0.9f), anchor(1.03f, 0, 0.8f)}, settings), (Anchors{0, 1}));
  EXPECT_EQ(kept_anchors({anchor(1, 79, 0.9f), anchor(1.03f, 79, 0.8f)}, settings), (Anchors{0}));
}

TEST(Nms, GivesTheSameForAnImageAloneAndInABatch) {
  auto const fixture = testing::golden_tensors("nms.safetensors").tensors;
  auto const batch = base::find_tensor(fixture, "pred");
  auto const together = non_maximum_suppression(batch, {});
  for (std::int64_t b = 0; b < batch.size(0); ++b) {
    auto const alone = non_maximum_suppression(batch.narrow(0, b, 1), {}).at(0);
    EXPECT_TRUE(at::equal(alone.rows, together[b].rows));
    EXPECT_TRUE(at::equal(alone.anchor, together[b].anchor));
  }
}

TEST(Nms, SurvivesEmptyImagesAndNotANumber) {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(kept_anchors({{0, 0, 1, 1, {0.0005f}}}, {}), (Anchors{}));
  EXPECT_EQ(kept_anchors({{0, 0, 1, 1, {nan}}, {nan, 0, 1, 1, {0.5f}}}, {}), (Anchors{1}));
  auto const none = non_maximum_suppression(at::zeros({2, 6, 0}), {});
  ASSERT_EQ(none.size(), 2u);
  EXPECT_EQ(none[0].rows.sizes(), (std::vector<std::int64_t>{0, 6}));
}

TEST(Nms, NamesWhatIsWrongWithItsInput) {
  auto text_of = [](at::Tensor const& tensor, NmsSettings const& settings) -> std::string {
    try {
      non_maximum_suppression(tensor, settings);
    } catch (base::Error const& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(text_of(at::zeros({4, 9}), {}).find("[4, 9]"), std::string::npos);
  EXPECT_NE(text_of(at::zeros({1, 4, 9}), {}).find("[1, 4, 9]"), std::string::npos);
  NmsSettings settings;
  settings.iou = 1.5f;
  EXPECT_NE(text_of(at::zeros({1, 5, 9}), settings).find("1.5"), std::string::npos);
}

}  // namespace
}  // namespace yolohpc::boxes
