#include "yolohpc/data/geometry.hpp"

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

using nlohmann::json;
using testing::golden_json;

Size size_from(json const& hw) {
  return {hw.at(0).get<int>(), hw.at(1).get<int>()};
}

json as_row(Letterbox const& placed) {
  return {placed.resized.width, placed.resized.height, placed.left,
          placed.top,           placed.right,          placed.bottom};
}

// Guards the ceil on load and the half-to-even rounding, the nudge and the modulo of the letterbox.
TEST(Geometry, AgreesWithTheTableOfSizes) {
  auto const fixture = golden_json("data/shapes.json");
  ASSERT_FALSE(fixture.at("letterbox").empty());
  for (auto const& row : fixture.at("letterbox")) {
    SCOPED_TRACE(row.dump());
    Size const picture{row.at("h").get<int>(), row.at("w").get<int>()};
    int const side = row.at("imgsz").get<int>();
    Size const square{side, side};
    Size const loaded = loaded_size(picture, side);
    EXPECT_EQ(json({loaded.width, loaded.height}), row.at("loader_wh"));
    auto const direct = letterbox(picture, square, ScaleUp::yes);
    EXPECT_EQ(as_row(direct), row.at("direct"));
    EXPECT_NEAR(direct.ratio, row.at("direct_ratio").get<double>(), 1e-12);
    EXPECT_EQ(as_row(letterbox(loaded, square, ScaleUp::no)), row.at("loader_then_pad"));
    EXPECT_EQ(as_row(letterbox(picture, square, ScaleUp::yes, Placement::minimum_rectangle)),
              row.at("min_rect"));
    EXPECT_EQ(as_row(letterbox(picture, square, ScaleUp::yes, Placement::top_left)),
              row.at("top_left"));
  }
}

TEST(Geometry, GroupsRectangularBatchesLikeTheReference) {
  auto const fixture = golden_json("data/shapes.json");
  for (auto const& table : fixture.at("rect_batches")) {
    std::vector<Size> pictures;
    for (auto const& hw : table.at("hw_in_file_order")) pictures.push_back(size_from(hw));
    RectangularSettings settings;
    settings.image_size = table.at("imgsz").get<int>();
    settings.batch = table.at("batch").get<std::int64_t>();
    settings.stride = table.at("stride").get<int>();
    settings.pad = table.at("pad").get<double>();
    auto const batches = rectangular_batches(pictures, settings);
    EXPECT_EQ(json(batches.order), table.at("order"));
    json shapes = json::array();
    for (Size const shape : batches.shapes) shapes.push_back({shape.height, shape.width});
    EXPECT_EQ(shapes, table.at("batch_shapes_hw"));
    for (std::size_t place = 0; place < batches.order.size(); ++place) {
      auto const index = batches.order[place];
      Size const loaded = loaded_size(pictures[index], settings.image_size);
      Size const shape = batches.shapes[place / static_cast<std::size_t>(settings.batch)];
      json row = {index, loaded.width, loaded.height};
      for (auto const& value : as_row(letterbox(loaded, shape, ScaleUp::no))) row.push_back(value);
      EXPECT_EQ(row, table.at("final").at(place));
    }
  }
}

Corners corners_from(json const& box) {
  return {box.at(0).get<float>(), box.at(1).get<float>(), box.at(2).get<float>(),
          box.at(3).get<float>()};
}

void expect_boxes(json const& in, json const& out, ImageGeometry const& geometry) {
  constexpr float bound_px = 1e-3f;  // the fixture's "box coordinates abs 1e-3"
  for (std::size_t i = 0; i < in.size(); ++i) {
    auto const got = to_original(corners_from(in.at(i)), geometry);
    auto const expected = corners_from(out.at(i));
    EXPECT_NEAR(got.x1, expected.x1, bound_px);
    EXPECT_NEAR(got.y1, expected.y1, bound_px);
    EXPECT_NEAR(got.x2, expected.x2, bound_px);
    EXPECT_NEAR(got.y2, expected.y2, bound_px);
  }
}

TEST(Geometry, BringsBoxesBackToTheOriginalPicture) {
  auto const fixture = golden_json("letterbox.json");
  ASSERT_NE(fixture.at("tolerance").get<std::string>().find("1e-3"), std::string::npos);
  for (auto const& row : fixture.at("rect")) {
    SCOPED_TRACE(row.at("original_hw").dump());
    Size const original = size_from(row.at("original_hw"));
    Size const loaded = size_from(row.at("loaded_hw"));
    Size const target = size_from(row.at("batch_shape_hw"));
    auto const placed = letterbox(loaded, target, ScaleUp::no);
    EXPECT_EQ(placed.target(), target);
    auto const geometry = image_geometry(original, loaded, placed);
    auto const& gain_and_pad = row.at("ratio_pad");
    EXPECT_NEAR(geometry.gain_y, gain_and_pad.at(0).at(0).get<double>(), 1e-12);
    EXPECT_NEAR(geometry.gain_x, gain_and_pad.at(0).at(1).get<double>(), 1e-12);
    EXPECT_EQ(geometry.pad_x, gain_and_pad.at(1).at(0).get<int>());
    EXPECT_EQ(geometry.pad_y, gain_and_pad.at(1).at(1).get<int>());
    expect_boxes(row.at("scale_boxes_in"), row.at("scale_boxes_with_ratio_pad"), geometry);
    expect_boxes(row.at("scale_boxes_in"), row.at("scale_boxes_without_ratio_pad"),
                 guessed_geometry(original, target));
  }
}

TEST(Geometry, PlacesPredictionsLikeTheReference) {
  auto const fixture = golden_json("letterbox.json");
  for (auto const& row : fixture.at("predict")) {
    SCOPED_TRACE(row.dump());
    auto const placement =
        row.at("auto_min_rect").get<bool>() ? Placement::minimum_rectangle : Placement::centred;
    auto const placed =
        letterbox(size_from(row.at("original_hw")), {640, 640}, ScaleUp::yes, placement);
    EXPECT_EQ(json({placed.resized.width, placed.resized.height}), row.at("resized_unpadded_wh"));
    auto const& pad = row.at("pad");
    EXPECT_EQ(placed.left, pad.at("left").get<int>());
    EXPECT_EQ(placed.top, pad.at("top").get<int>());
    EXPECT_EQ(placed.right, pad.at("right").get<int>());
    EXPECT_EQ(placed.bottom, pad.at("bottom").get<int>());
  }
}

TEST(Geometry, NamesASizeThatIsNoPicture) {
  try {
    loaded_size({480, 0}, 640);
    FAIL() << "a picture without columns was accepted";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("0 x 480"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace yolohpc::data
