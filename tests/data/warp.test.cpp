#include <gtest/gtest.h>

#include "yolohpc/data/affine.hpp"

#include "picture_support.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

using nlohmann::json;
using namespace testing;

std::vector<std::uint8_t> warped(Canvas const& canvas, WarpSettings const& settings) {
  auto const sampler = make_row_sampler(canvas, settings);
  std::vector<std::uint32_t> row(static_cast<std::size_t>(settings.output.width));
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < settings.output.height; ++y) {
    sampler->sample_row(y, row.data());
    for (auto const pixel : row) {
      for (unsigned shift = 0; shift < 24; shift += 8) {
        rgb.push_back(static_cast<std::uint8_t>(pixel >> shift));
      }
    }
  }
  return rgb;
}

Matrix matrix_from(at::Tensor const& tensor) {
  Matrix matrix{};
  std::copy_n(tensor.const_data_ptr<float>(), 9, matrix.begin());
  return matrix;
}

AffineDraw draw_from(json const& one) {
  AffineDraw draw;
  draw.scale = one.at("scale").get<double>();
  draw.angle_deg = one.value("degrees", 0.0);
  if (one.contains("shear")) {
    draw.shear_x_deg = one.at("shear").at(0).get<double>();
    draw.shear_y_deg = one.at("shear").at(1).get<double>();
  }
  draw.centre_x = one.at("translate").at(0).get<double>();
  draw.centre_y = one.at("translate").at(1).get<double>();
  return draw;
}

class AffineFixture : public ::testing::Test {
 protected:
  json const fixture_ = golden_json("data/affine.json");
  base::Safetensors const tensors_ = golden_tensors("data/affine.safetensors");

  at::Tensor tensor(json const& one, std::string const& what) const {
    return tensor_named(tensors_, one.at("name").get<std::string>() + "." + what);
  }
  static Size size(json const& wh) { return {wh.at(1).get<int>(), wh.at(0).get<int>()}; }
};

TEST_F(AffineFixture, MatricesAgree) {
  for (auto const& one : fixture_.at("cases")) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    auto const got = affine_matrix(draw_from(one), size(one.at("in_wh")), size(one.at("out_wh")));
    auto const expected = matrix_from(tensor(one, "M"));
    for (std::size_t i = 0; i < 9; ++i) {
      // Products of numbers up to 1280 in float32: rounding of 1e-4.
      EXPECT_NEAR(got[i], expected[i], 2e-4) << "element " << i;
    }
  }
}

TEST_F(AffineFixture, PixelsAgree) {
  auto const text = fixture_.at("tolerance").at("float_coordinates").get<std::string>();
  for (auto const& one : fixture_.at("cases")) {
    if (one.value("boxes_only", false)) continue;
    SCOPED_TRACE(one.at("name").get<std::string>());
    auto const input = image_from(tensor(one, "input"));
    WarpSettings settings;
    settings.matrix = matrix_from(tensor(one, "M"));
    settings.output = size(one.at("out_wh"));
    auto const got = warped(single_canvas(view_of(input)), settings);
    auto const difference =
        pixel_difference(got.data(), tensor(one, "out").const_data_ptr<std::uint8_t>(), got.size());
    EXPECT_LE(difference.max, bound_in(text, "max"));
    EXPECT_LE(difference.mean, bound_in(text, "mean"));
  }
}

// The separable path and the pixel-by-pixel path are two programs for one map.
TEST_F(AffineFixture, BothPathsGiveTheSamePixels) {
  for (auto const& one : fixture_.at("cases")) {
    if (one.value("boxes_only", false) || one.at("degrees").get<double>() != 0) continue;
    auto const input = image_from(tensor(one, "input"));
    WarpSettings settings;
    settings.matrix = matrix_from(tensor(one, "M"));
    settings.output = size(one.at("out_wh"));
    auto const separable = warped(single_canvas(view_of(input)), settings);
    settings.matrix[1] =
        1e-30f;  // small enough to change nothing, enough to leave the separable path
    auto const general = warped(single_canvas(view_of(input)), settings);
    EXPECT_EQ(pixel_difference(separable.data(), general.data(), general.size()).max, 0)
        << one.at("name");
  }
}

TEST_F(AffineFixture, BoxesAndTheirFilterAgree) {
  constexpr double bound_px = 2e-3;  // the fixture's "abs 2e-3 px"
  for (auto const& one : fixture_.at("cases")) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    auto const matrix = matrix_from(tensor(one, "M"));
    auto const output = size(one.at("out_wh"));
    auto const in = boxes_from(tensor(one, "boxes_in"), {});
    auto const raw = boxes_from(tensor(one, "boxes_raw"), {});
    auto const clip = boxes_from(tensor(one, "boxes_clip"), {});
    auto const keep = tensor(one, "keep");
    auto const scale = static_cast<float>(one.at("scale").get<double>());
    int kept = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      auto const mapped = mapped_box(in[i].box, matrix);
      EXPECT_NEAR(mapped.x1, raw[i].box.x1, bound_px) << i;
      EXPECT_NEAR(mapped.y1, raw[i].box.y1, bound_px) << i;
      EXPECT_NEAR(mapped.x2, raw[i].box.x2, bound_px) << i;
      EXPECT_NEAR(mapped.y2, raw[i].box.y2, bound_px) << i;
      auto const clipped = clipped_box(mapped, output);
      EXPECT_NEAR(clipped.x1, clip[i].box.x1, bound_px) << i;
      EXPECT_NEAR(clipped.y2, clip[i].box.y2, bound_px) << i;
      bool const keeps = keeps_box(in[i].box, clipped, scale);
      EXPECT_EQ(keeps, keep.const_data_ptr<std::uint8_t>()[i] != 0) << "box " << i;
      kept += keeps ? 1 : 0;
    }
    EXPECT_EQ(kept, one.at("kept").get<int>());
  }
}

class MosaicFixture : public ::testing::Test {
 protected:
  json const fixture_ = golden_json("data/mosaic.json");
  base::Safetensors const tensors_ = golden_tensors("data/mosaic.safetensors");
  int const side_ = fixture_.at("imgsz").get<int>();

  std::array<Image, 4> pictures() const {
    std::array<Image, 4> images;
    for (std::size_t i = 0; i < 4; ++i) {
      images[i] = image_from(tensor_named(tensors_, "img" + std::to_string(i)));
    }
    return images;
  }
  /// The labels of picture `i` in its pixels.
  std::vector<LabelledBox> labels(std::size_t i, Size size) const {
    auto const name = "img" + std::to_string(i);
    auto boxes =
        boxes_from(tensor_named(tensors_, name + ".boxes"), tensor_named(tensors_, name + ".cls"));
    for (auto& [box, label] : boxes) {
      auto const w = static_cast<float>(size.width);
      auto const h = static_cast<float>(size.height);
      box = {(box.x1 - box.x2 / 2) * w, (box.y1 - box.y2 / 2) * h, (box.x1 + box.x2 / 2) * w,
             (box.y1 + box.y2 / 2) * h};
    }
    return boxes;
  }
};

// Sampling the canvas where it is, pixel by pixel, must give the canvas the reference painted.
TEST_F(MosaicFixture, CanvasesAgree) {
  auto const images = pictures();
  std::array<PixelView, 4> views;
  for (std::size_t i = 0; i < 4; ++i) views[i] = view_of(images[i]);
  for (auto const& one : fixture_.at("cases")) {
    auto const key = one.at("key").get<std::string>();
    SCOPED_TRACE(key);
    auto const canvas =
        mosaic_canvas(views, side_, one.at("xc").get<int>(), one.at("yc").get<int>());
    WarpSettings settings;
    settings.matrix = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    settings.output = canvas.size;
    auto const expected = tensor_named(tensors_, key + ".out");
    for (float const tiny : {0.0f, 1e-30f}) {  // the separable path, then the general one
      settings.matrix[1] = tiny;
      auto const got = warped(canvas, settings);
      EXPECT_EQ(
          pixel_difference(got.data(), expected.const_data_ptr<std::uint8_t>(), got.size()).max, 0);
    }
  }
}

TEST_F(MosaicFixture, CanvasBoxesAgree) {
  constexpr double bound_px = 1e-3;  // the fixture's "boxes abs 1e-3 px"
  auto const images = pictures();
  std::array<PixelView, 4> views;
  for (std::size_t i = 0; i < 4; ++i) views[i] = view_of(images[i]);
  for (auto const& one : fixture_.at("cases")) {
    auto const key = one.at("key").get<std::string>();
    SCOPED_TRACE(key);
    auto const canvas =
        mosaic_canvas(views, side_, one.at("xc").get<int>(), one.at("yc").get<int>());
    std::vector<LabelledBox> got;
    for (std::size_t i = 0; i < 4; ++i) {
      append_canvas_boxes(labels(i, views[i].size), canvas.tiles[i], canvas.size, got);
    }
    auto const expected =
        boxes_from(tensor_named(tensors_, key + ".boxes"), tensor_named(tensors_, key + ".cls"));
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].label, expected[i].label);
      EXPECT_NEAR(got[i].box.x1, expected[i].box.x1, bound_px);
      EXPECT_NEAR(got[i].box.y1, expected[i].box.y1, bound_px);
      EXPECT_NEAR(got[i].box.x2, expected[i].box.x2, bound_px);
      EXPECT_NEAR(got[i].box.y2, expected[i].box.y2, bound_px);
    }
  }
}

// A brute-force oracle at a scale that is no whole number: paint the canvas, then interpolate it.
TEST_F(MosaicFixture, TapsAcrossTilesComeFromTheirOwnTile) {
  auto const images = pictures();
  std::array<PixelView, 4> views;
  for (std::size_t i = 0; i < 4; ++i) views[i] = view_of(images[i]);
  auto const& one = fixture_.at("cases").at(0);
  auto const painted =
      image_from(tensor_named(tensors_, one.at("key").get<std::string>() + ".out"));
  auto const canvas = mosaic_canvas(views, side_, one.at("xc").get<int>(), one.at("yc").get<int>());
  for (double const angle : {0.0, 21.0}) {
    WarpSettings settings;
    settings.output = {side_, side_};
    settings.matrix = affine_matrix({angle, 0.73, 0, 0, 0.47, 0.55}, canvas.size, settings.output);
    settings.flip_x = angle == 0;
    settings.flip_y = angle != 0;
    auto const direct = warped(canvas, settings);
    auto const from_painted = warped(single_canvas(view_of(painted)), settings);
    EXPECT_EQ(pixel_difference(direct.data(), from_painted.data(), direct.size()).max, 0) << angle;
  }
}

TEST(Warp, FlipsMirrorTheOutput) {
  auto picture = plain_picture(5, 4, 0, 0, 0);
  fill_rectangle(picture, 1, 0, 2, 1, 200, 100, 50);
  WarpSettings settings;
  settings.matrix = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  settings.output = {4, 5};
  settings.flip_x = true;
  settings.flip_y = true;
  auto const got = warped(single_canvas(view_of(picture)), settings);
  EXPECT_EQ(got[(3 * 5 + 3) * 3], 200);
  EXPECT_EQ(std::count(got.begin(), got.end(), 200), 1);
}

}  // namespace
}  // namespace yolohpc::data
