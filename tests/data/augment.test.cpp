#include "yolohpc/data/augment.hpp"

#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "picture_support.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

using nlohmann::json;
using namespace testing;

class ChainFixture : public ::testing::Test {
 protected:
  ChainFixture() {
    auto const sources = golden_tensors("data/mosaic.safetensors");
    for (std::size_t i = 0; i < 4; ++i) {
      auto const name = "img" + std::to_string(i);
      pictures_[i].image = image_from(tensor_named(sources, name));
      auto boxes =
          boxes_from(tensor_named(sources, name + ".boxes"), tensor_named(sources, name + ".cls"));
      auto const w = static_cast<float>(pictures_[i].image.width);
      auto const h = static_cast<float>(pictures_[i].image.height);
      for (auto& [box, label] : boxes) {  // stored as cx cy w h, normalised
        box = {(box.x1 - box.x2 / 2) * w, (box.y1 - box.y2 / 2) * h, (box.x1 + box.x2 / 2) * w,
               (box.y1 + box.y2 / 2) * h};
      }
      pictures_[i].boxes = boxes;
    }
  }

  static AugmentDraw draw_from(json const& one) {
    AugmentDraw draw;
    draw.frame.affine.scale = one.at("s").get<double>();
    draw.frame.affine.centre_x = one.at("tx").get<double>();
    draw.frame.affine.centre_y = one.at("ty").get<double>();
    if (!one.at("mosaic").is_null()) {
      auto& mosaic = draw.frame.mosaic.emplace();
      mosaic.centre_x = one.at("mosaic").at(0).get<int>();
      mosaic.centre_y = one.at("mosaic").at(1).get<int>();
    }
    auto const& r = one.at("r");
    draw.color = {r.at(0).get<double>(), r.at(1).get<double>(), r.at(2).get<double>()};
    draw.flip_x = one.at("flip").get<bool>();
    return draw;
  }

  void expect_boxes(std::vector<LabelledBox> const& got, std::string const& name) const {
    auto const expected =
        boxes_from(tensor_named(tensors_, name + ".boxes"), tensor_named(tensors_, name + ".cls"));
    constexpr double bound = 1e-4;  // the fixture's "abs 1e-4 (normalised)"
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      auto const& box = got[i].box;
      EXPECT_EQ(got[i].label, expected[i].label) << i;
      EXPECT_NEAR((box.x1 + box.x2) / 2, expected[i].box.x1, bound) << i;
      EXPECT_NEAR((box.y1 + box.y2) / 2, expected[i].box.y1, bound) << i;
      EXPECT_NEAR(box.x2 - box.x1, expected[i].box.x2, bound) << i;
      EXPECT_NEAR(box.y2 - box.y1, expected[i].box.y2, bound) << i;
    }
  }

  json const fixture_ = golden_json("data/chain.json");
  base::Safetensors const tensors_ = golden_tensors("data/chain.safetensors");
  std::array<LoadedPicture, 4> pictures_;
};

TEST_F(ChainFixture, PixelsAndBoxesAgree) {
  int const side = fixture_.at("imgsz").get<int>();
  auto const text = fixture_.at("tolerance").at("float_coordinate_warp").get<std::string>();
  for (auto const& one : fixture_.at("cases")) {
    auto const name = one.at("name").get<std::string>();
    SCOPED_TRACE(name);
    FramePictures sources{&pictures_[0]};
    if (!one.at("mosaic").is_null()) {
      sources = {&pictures_[0], &pictures_[1], &pictures_[2], &pictures_[3]};
    }
    std::vector<std::uint8_t> planes(static_cast<std::size_t>(side) *
                                     static_cast<std::size_t>(side) * 3);
    auto const boxes = augment(draw_from(one), sources, {}, side, planes.data());
    auto const expected = tensor_named(tensors_, name + ".out");
    auto const difference =
        pixel_difference(planes.data(), expected.const_data_ptr<std::uint8_t>(), planes.size());
    EXPECT_LE(difference.max, bound_in(text, "max"));
    EXPECT_LE(difference.mean, bound_in(text, "mean"));
    EXPECT_LE(difference.share_above_2, bound_in(text, "more than 2"));
    RecordProperty(name, std::to_string(difference.mean));
    expect_boxes(boxes, name);
  }
}

// --- boxes against pixels
// --------------------------------------------------------------------------

constexpr int side = 128;

/// A grey picture with one red rectangle, and its box.
LoadedPicture red_rectangle(int x1, int y1, int x2, int y2) {
  LoadedPicture picture;
  picture.image = plain_picture(128, 96, 114, 114, 114);
  fill_rectangle(picture.image, x1, y1, x2, y2, 250, 5, 5);
  picture.boxes.push_back({{static_cast<float>(x1), static_cast<float>(y1), static_cast<float>(x2),
                            static_cast<float>(y2)},
                           1});
  return picture;
}

/// The hull of the pixels that are mostly red, pixel indices.
struct Hull {
  int x1 = side, y1 = side, x2 = -1, y2 = -1;
};
Hull red_hull(std::vector<std::uint8_t> const& planes) {
  Hull hull;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      auto const i = static_cast<std::size_t>(y * side + x);
      if (planes[i] < planes[i + side * side] + 40) continue;
      hull = {std::min(hull.x1, x), std::min(hull.y1, y), std::max(hull.x2, x),
              std::max(hull.y2, y)};
    }
  }
  return hull;
}

struct Option {
  char const* name;
  AugmentSettings settings;
};

std::vector<Option> options() {
  AugmentSettings plain;
  plain.mosaic = 0;
  plain.fliplr = 0;
  plain.hsv_s = 0.2;  // so that red stays red enough to be found
  plain.hsv_v = 0.2;
  std::vector<Option> all{{"scale and translate", plain}};
  auto const add = [&](char const* name, double AugmentSettings::*member, double value) {
    auto settings = plain;
    settings.*member = value;
    all.push_back({name, settings});
  };
  add("fliplr", &AugmentSettings::fliplr, 1);
  add("flipud", &AugmentSettings::flipud, 1);
  add("degrees", &AugmentSettings::degrees, 30);
  add("shear", &AugmentSettings::shear, 15);
  add("mosaic", &AugmentSettings::mosaic, 1);
  add("mixup", &AugmentSettings::mixup, 1);
  return all;
}

// A box must lie around its pixels whatever was done to both, and closely so, unless the rectangle
// was turned. A pixel index covers [i, i + 1], and the warp maps indices, not centres: hence one
// pixel of slack.
TEST(Augment, BoxesFollowThePixelsUnderEveryOption) {
  auto const picture = red_rectangle(40, 30, 90, 60);
  LoadedPicture blank;
  blank.image = plain_picture(128, 128, 114, 114, 114);
  for (auto const& [name, settings] : options()) {
    int compared = 0;
    for (std::uint64_t i = 0; i < 40; ++i) {
      SCOPED_TRACE(base::join(name, ", draw ", i));
      auto const draw = draw_augmentation(settings, {9, 0, i}, side, 4, Combine::yes);
      FramePictures sources{&picture};
      if (draw.frame.mosaic) sources = {&picture, &blank, &blank, &blank};
      std::vector<std::uint8_t> planes(side * side * 3);
      auto const boxes = augment(draw, sources, {&blank}, side, planes.data());
      if (boxes.empty()) continue;
      ++compared;
      ASSERT_EQ(boxes.size(), 1u);
      auto const& box = boxes[0].box;
      auto const hull = red_hull(planes);
      double const slack = 2 + draw.frame.affine.scale;
      bool const is_turned = settings.degrees > 0 || settings.shear > 0;
      EXPECT_GE(hull.x1, box.x1 * side - slack);
      EXPECT_GE(hull.y1, box.y1 * side - slack);
      EXPECT_LE(hull.x2, box.x2 * side + slack);
      EXPECT_LE(hull.y2, box.y2 * side + slack);
      if (is_turned) continue;
      EXPECT_LE(hull.x1, box.x1 * side + slack);
      EXPECT_LE(hull.y1, box.y1 * side + slack);
      EXPECT_GE(hull.x2 + 1, box.x2 * side - slack);
      EXPECT_GE(hull.y2 + 1, box.y2 * side - slack);
    }
    EXPECT_GT(compared, 10) << name;
  }
}

TEST(Augment, MixupBlendsPixelsAndJoinsBoxes) {
  auto const first = red_rectangle(10, 10, 60, 60);
  LoadedPicture second;
  second.image = plain_picture(128, 128, 10, 20, 210);
  second.boxes.push_back({{20, 20, 100, 100}, 4});
  AugmentDraw draw;
  draw.mixup.emplace();
  draw.mixup->ratio = 0.6;
  std::vector<std::uint8_t> planes(side * side * 3);
  auto const boxes = augment(draw, {&first}, {&second}, side, planes.data());
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_EQ(boxes[0].label, 1);
  EXPECT_EQ(boxes[1].label, 4);
  // Picture 1 (128 x 96) sits 16 rows down; its border and ground are 114. trunc(0.6 * 114 + 0.4 *
  // 10) = 72. The colour conversion there and back moves a value by up to 4 (fixture hsv, gains 0).
  std::size_t const corner = 120 * side + 120;
  EXPECT_NEAR(planes[corner], 72, 4);
  EXPECT_NEAR(planes[corner + side * side], 76, 4);
  EXPECT_NEAR(planes[corner + 2 * side * side], 152, 4);
}

TEST(Augment, DrawsDependOnSeedEpochAndPositionOnly) {
  AugmentSettings const settings;
  auto const scale = [&](SampleKey const& key) {
    return draw_augmentation(settings, key, side, 8, Combine::yes).frame.affine.scale;
  };
  EXPECT_EQ(scale({1, 2, 3}), scale({1, 2, 3}));
  EXPECT_NE(scale({1, 2, 3}), scale({2, 2, 3}));
  EXPECT_NE(scale({1, 2, 3}), scale({1, 3, 3}));
  EXPECT_NE(scale({1, 2, 3}), scale({1, 2, 4}));
}

// Ranges of spec/data.md sections 3, 5, 7 and probabilities of section 0.
TEST(Augment, DrawsFillTheirRanges) {
  AugmentSettings settings;
  settings.mixup = 0.25;
  constexpr int draws = 4000;
  double least_scale = 9;
  double most_scale = 0;
  double ratio_sum = 0;
  int flips = 0;
  int mixups = 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    auto const draw = draw_augmentation(settings, {0, 0, i}, 160, 16, Combine::yes);
    EXPECT_GE(draw.frame.mosaic->centre_x, 80);
    EXPECT_LE(draw.frame.mosaic->centre_x, 239);
    EXPECT_LE(std::abs(draw.color.hue), 0.015);
    EXPECT_LE(std::abs(draw.color.value), 0.4);
    EXPECT_EQ(draw.frame.affine.angle_deg, 0);
    EXPECT_FALSE(draw.flip_y);
    least_scale = std::min(least_scale, draw.frame.affine.scale);
    most_scale = std::max(most_scale, draw.frame.affine.scale);
    flips += draw.flip_x ? 1 : 0;
    mixups += draw.mixup ? 1 : 0;
    if (draw.mixup) ratio_sum += draw.mixup->ratio;
  }
  EXPECT_NEAR(least_scale, 0.5, 0.01);
  EXPECT_NEAR(most_scale, 1.5, 0.01);
  EXPECT_NEAR(flips, draws / 2, 130);          // four standard deviations
  EXPECT_NEAR(mixups, draws / 4, 110);         // four standard deviations
  EXPECT_NEAR(ratio_sum / mixups, 0.5, 0.01);  // Beta(32, 32): 0.5 +- 0.062 each
}

TEST(Augment, LastEpochsCombineNothing) {
  AugmentSettings settings;
  settings.mixup = 1;
  auto const draw = draw_augmentation(settings, {0, 0, 1}, side, 8, Combine::no);
  EXPECT_FALSE(draw.frame.mosaic.has_value());
  EXPECT_FALSE(draw.mixup.has_value());
}

TEST(Augment, RefusesSettingsOutOfRange) {
  AugmentSettings settings;
  settings.scale = 1;
  try {
    settings.check();
    FAIL() << "a scale range that includes 0 was accepted";
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("--scale is 1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace yolohpc::data
