#include "yolohpc/data/resize.hpp"

#include <gtest/gtest.h>

#include "yolohpc/data/letterbox.hpp"

#include "picture_support.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

using nlohmann::json;
using namespace testing;

/// The channels a fixture tensor holds of an interleaved picture: all, or the first of a grey one.
std::vector<std::uint8_t> with_channels(std::vector<std::uint8_t> const& rgb,
                                        std::int64_t channels) {
  std::vector<std::uint8_t> values;
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    if (static_cast<std::int64_t>(i % 3) < channels) values.push_back(rgb[i]);
  }
  return values;
}

class LetterboxFixture : public ::testing::Test {
 protected:
  json const fixture_ = golden_json("data/letterbox.json");
  base::Safetensors const tensors_ = golden_tensors("data/letterbox.safetensors");
  std::string const inside_ = fixture_.at("tolerance").at("inside_content").get<std::string>();

  /// The picture of a case through the path under test, planes of the target.
  static Letterbox placed_by(std::string const& kind, Size original, int side, Size& loaded) {
    Size const square{side, side};
    loaded = kind == "loader" ? loaded_size(original, side) : original;
    return letterbox(loaded, square, kind == "loader" ? ScaleUp::no : ScaleUp::yes);
  }

  void expect_target(json const& target, Image const& input, std::string const& name) {
    SCOPED_TRACE(target.at("key").get<std::string>());
    int const side = target.at("imgsz").get<int>();
    std::string const key = target.at("key").get<std::string>();
    Size loaded;
    auto const placed =
        placed_by(target.at("kind").get<std::string>(), view_of(input).size, side, loaded);
    Image resized;
    resize_bilinear(view_of(input), loaded, resized);
    std::vector<std::uint8_t> planes(static_cast<std::size_t>(side) * side * 3);
    Image scratch;
    write_letterbox(view_of(resized), placed, planes.data(), scratch);
    auto const canvas = interleaved(planes.data(), side, side);
    expect_border(canvas, placed, side);
    expect_content(canvas, placed, side, key);
    expect_boxes(name, key, image_geometry(view_of(input).size, loaded, placed), target);
  }

  static bool is_content(int x, int y, Letterbox const& placed) {
    return x >= placed.left && x < placed.left + placed.resized.width && y >= placed.top &&
           y < placed.top + placed.resized.height;
  }

  static void expect_border(std::vector<std::uint8_t> const& canvas, Letterbox const& placed,
                            int side) {
    for (std::size_t i = 0; i < canvas.size(); ++i) {
      int const x = static_cast<int>(i / 3) % side;
      int const y = static_cast<int>(i / 3) / side;
      if (!is_content(x, y, placed)) {
        ASSERT_EQ(canvas[i], 114) << "x " << x << " y " << y;
      }
    }
  }

  /// The part of a (side, side, channels) canvas that the picture covers.
  static std::vector<std::uint8_t> cropped(std::vector<std::uint8_t> const& canvas,
                                           Letterbox const& placed, int side) {
    std::vector<std::uint8_t> content;
    auto const channels = canvas.size() / (static_cast<std::size_t>(side) * side);
    for (std::size_t i = 0; i < canvas.size(); ++i) {
      auto const pixel = static_cast<int>(i / channels);
      if (is_content(pixel % side, pixel / side, placed)) content.push_back(canvas[i]);
    }
    return content;
  }

  void expect_content(std::vector<std::uint8_t> const& canvas, Letterbox const& placed, int side,
                      std::string const& key) {
    bool const is_whole = has_tensor(tensors_, key + ".canvas");
    auto const stored = tensor_named(tensors_, key + (is_whole ? ".canvas" : ".content"));
    auto const* const bytes = stored.const_data_ptr<std::uint8_t>();
    std::vector<std::uint8_t> expected(bytes, bytes + stored.numel());
    if (is_whole) expected = cropped(expected, placed, side);
    auto const got = with_channels(cropped(canvas, placed, side), stored.size(2));
    ASSERT_EQ(got.size(), expected.size());
    auto const difference = pixel_difference(got.data(), expected.data(), got.size());
    EXPECT_LE(difference.max, bound_in(inside_, "max abs diff"));
    EXPECT_LE(difference.mean, bound_in(inside_, "mean abs diff"));
    RecordProperty(key, std::to_string(difference.mean));
  }

  void expect_boxes(std::string const& name, std::string const& key, ImageGeometry const& geometry,
                    json const& target) {
    auto const in = boxes_from(tensor_named(tensors_, name + ".boxes_in"), {});
    auto const out = boxes_from(tensor_named(tensors_, key + ".boxes"), {});
    constexpr double bound_px = 1e-3;  // the fixture's "abs 1e-3 px"
    EXPECT_EQ(geometry.pad_x, target.at("ratio_pad_left_top").at(0).get<int>());
    EXPECT_EQ(geometry.pad_y, target.at("ratio_pad_left_top").at(1).get<int>());
    for (std::size_t i = 0; i < in.size(); ++i) {
      EXPECT_NEAR(in[i].box.x1 * geometry.gain_x + geometry.pad_x, out[i].box.x1, bound_px);
      EXPECT_NEAR(in[i].box.y2 * geometry.gain_y + geometry.pad_y, out[i].box.y2, bound_px);
    }
  }
};

TEST_F(LetterboxFixture, PixelsBordersAndBoxesAgree) {
  for (auto const& one : fixture_.at("cases")) {
    auto const name = one.at("name").get<std::string>();
    auto const input = image_from(tensor_named(tensors_, name + ".input"));
    for (auto const& target : one.at("targets")) expect_target(target, input, name);
  }
}

// 2x2 blocks are averaged, halves rounded up: (1 + 2 + 2 + 1) / 4 = 1.5 becomes 2.
TEST(Resize, HalvesByAveragingBlocks) {
  Image picture;
  picture.width = 2;
  picture.height = 2;
  picture.rgb = {1, 0, 10, 2, 0, 20, 2, 0, 30, 1, 1, 40};
  Image half;
  resize_bilinear(view_of(picture), {1, 1}, half);
  EXPECT_EQ(half.rgb, (std::vector<std::uint8_t>{2, 0, 25}));
}

TEST(Resize, KeepsAPictureOfTheSameSize) {
  auto picture = plain_picture(3, 2, 9, 8, 7);
  fill_rectangle(picture, 1, 0, 2, 1, 1, 2, 3);
  Image same;
  resize_bilinear(view_of(picture), {2, 3}, same);
  EXPECT_EQ(same.rgb, picture.rgb);
}

}  // namespace
}  // namespace yolohpc::data
