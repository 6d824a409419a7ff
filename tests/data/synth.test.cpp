// Drawn data sets: shapes against their areas, boxes against pixels, and the files.
#include "yolohpc/data/synth.hpp"

#include <cmath>
#include <cstdlib>
#include <numbers>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <turbojpeg.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "support/golden.hpp"
#include "synth_shapes.hpp"

namespace yolohpc::data {
namespace {

using std::numbers::pi;

int index_of(std::string_view name) {
  for (std::size_t i = 0; i < synth_shapes.size(); ++i) {
    if (synth_shapes[i] == name) return static_cast<int>(i);
  }
  return -1;
}

double sampled_area(std::string_view name, double aspect) {
  constexpr int steps = 1000;
  std::int64_t hits = 0;
  for (int i = 0; i < steps * steps; ++i) {
    double const u = 2 * (i % steps + 0.5) / steps - 1;
    double const v = 2 * (i / steps + 0.5) / steps - 1;
    hits += is_inside(index_of(name), aspect, u, v) ? 1 : 0;
  }
  return 4.0 * static_cast<double>(hits) / (steps * steps);
}

// Area of the lens of two circles of radii 1 and r whose centres are d apart.
double lens_area(double r, double d) {
  double const a = std::acos((d * d + 1 - r * r) / (2 * d));
  double const b = std::acos((d * d + r * r - 1) / (2 * d * r));
  return a - std::sin(2 * a) / 2 + r * r * (b - std::sin(2 * b) / 2);
}

// Closed forms for shapes whose tips lie on the unit circle. 5e-3: a grid of 1000 x 1000 points.
TEST(Shapes, HaveTheAreasOfTheirFormulas) {
  EXPECT_NEAR(sampled_area("disc", 0.7), 0.7 * pi, 5e-3);
  EXPECT_NEAR(sampled_area("square", 1), 1.56 * 1.56, 5e-3);
  EXPECT_NEAR(sampled_area("triangle", 1), 3 * std::sqrt(3.0) / 4, 5e-3);
  EXPECT_NEAR(sampled_area("star", 1), 5 * 0.45 * std::sin(pi / 5), 5e-3);
  EXPECT_NEAR(sampled_area("ring", 1), pi * (1 - 0.55 * 0.55), 5e-3);
  EXPECT_NEAR(sampled_area("cross", 1), 2 * 1.9 * 0.6 - 0.36, 5e-3);
  EXPECT_NEAR(sampled_area("crescent", 1), pi - lens_area(0.85, 0.5), 5e-3);
  EXPECT_NEAR(sampled_area("hexagon", 1), 3 * std::sqrt(3.0) / 2, 5e-3);
}

// Centre of pixel 50 is at 50.5: a disc of radius 10.2 there covers the pixels 40 to 60.
TEST(Footprint, BoxIsThatOfThePixels) {
  auto const whole =
      footprint_of({.shape = 0, .x_px = 50.5, .y_px = 50.5, .radius_px = 10.2}, 100, 100);
  EXPECT_EQ(whole.box_px, (std::array<int, 4>{40, 40, 21, 21}));
  EXPECT_NEAR(static_cast<double>(whole.area_px), pi * 10.2 * 10.2, 8);
  EXPECT_NEAR(whole.full_area_px, pi * 10.2 * 10.2, 4);
  auto const cut =
      footprint_of({.shape = 0, .x_px = 0.5, .y_px = 50.5, .radius_px = 10.2}, 100, 100);
  EXPECT_EQ(cut.box_px, (std::array<int, 4>{0, 40, 11, 21}));
  EXPECT_EQ(footprint_of({.shape = 0, .x_px = -20, .y_px = 5, .radius_px = 10}, 100, 100).area_px,
            0);
}

// Each edge of the box touches a painted pixel, and outside of it nothing but a soft rim changes.
TEST(Footprint, PaintStaysInTheBoxAndReachesItsEdges) {
  for (int shape = 0; shape < static_cast<int>(synth_shapes.size()); ++shape) {
    Canvas canvas{80, 60, std::vector<Color>(80 * 60)};
    Pose const pose{
        .shape = shape, .x_px = 40.3, .y_px = 28.7, .radius_px = 17, .angle = 0.4 + shape};
    auto const footprint = footprint_of(pose, 80, 60);
    base::Philox random(1, 0, 0, base::Purpose::test);
    paint_in_place(canvas, pose, footprint, {.first = {1, 1, 1}, .second = {1, 1, 1}}, random);
    auto const [x0, y0, width, height] = footprint.box_px;
    int left = 0, right = 0, upper = 0, lower = 0;
    for (int y = 0; y < 60; ++y) {
      for (int x = 0; x < 80; ++x) {
        bool const is_painted = canvas.at(x, y)[0] >= 0.5F;
        bool const is_in_box = x >= x0 && x < x0 + width && y >= y0 && y < y0 + height;
        EXPECT_TRUE(is_in_box || !is_painted) << shape;
        left += is_painted && x == x0;
        right += is_painted && x == x0 + width - 1;
        upper += is_painted && y == y0;
        lower += is_painted && y == y0 + height - 1;
      }
    }
    EXPECT_TRUE(left > 0 && right > 0 && upper > 0 && lower > 0) << shape;
  }
}

TEST(DrawPicture, DependsOnItsArgumentsAlone) {
  SynthSettings settings;
  auto const picture = draw_picture(settings, SynthSplit::train, 7);
  draw_picture(settings, SynthSplit::train, 8);
  EXPECT_EQ(draw_picture(settings, SynthSplit::train, 7).rgb, picture.rgb);
  settings.train_images = 1000;
  EXPECT_EQ(draw_picture(settings, SynthSplit::train, 7).rgb, picture.rgb);
  EXPECT_NE(draw_picture(settings, SynthSplit::val, 7).rgb, picture.rgb);
  EXPECT_NE(draw_picture(settings, SynthSplit::train, 6).rgb, picture.rgb);
  settings.seed = 1;
  EXPECT_NE(draw_picture(settings, SynthSplit::train, 7).rgb, picture.rgb);
}

// What makes it a detection problem: every class, tiny and large, overlaps, empty pictures, crowds.
TEST(DrawPicture, OffersWhatADetectorHasToLearn) {
  SynthSettings const settings{.width_px = 160, .height_px = 120};
  std::set<int> classes;
  int empty = 0, crowds = 0, tiny = 0, large = 0, objects = 0;
  for (std::uint64_t i = 0; i < 150; ++i) {
    auto const picture = draw_picture(settings, SynthSplit::train, i);
    EXPECT_EQ(picture.rgb.size(), 3U * picture.width_px * picture.height_px);
    EXPECT_TRUE(picture.width_px >= 120 && picture.width_px <= 160);
    EXPECT_TRUE(picture.height_px >= 90 && picture.height_px <= 120);
    empty += picture.objects.empty();
    for (auto const& object : picture.objects) {
      auto const [x, y, width, height] = object.box_px;
      EXPECT_TRUE(x >= 0 && y >= 0 && width > 0 && height > 0);
      EXPECT_TRUE(x + width <= picture.width_px && y + height <= picture.height_px);
      EXPECT_TRUE(object.area_px > 0 && object.area_px <= std::int64_t{width} * height);
      crowds += object.is_crowd;
      tiny += std::max(width, height) < 10;
      large += std::max(width, height) > 40;
      classes.insert(object.class_index);
      ++objects;
    }
  }
  EXPECT_EQ(classes, (std::set<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_GE(objects, 450);
  EXPECT_TRUE(empty > 1 && empty < 20) << empty;
  EXPECT_TRUE(crowds > 0 && crowds < 15) << crowds;
  EXPECT_GE(tiny, 30);
  EXPECT_GE(large, 30);
}

std::vector<std::uint8_t> decoded(std::vector<std::byte> const& bytes, int width_px,
                                  int height_px) {
  std::vector<std::uint8_t> rgb(3U * width_px * height_px);
  auto* handle = tjInitDecompress();
  EXPECT_EQ(
      tjDecompress2(handle, reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size(),
                    rgb.data(), width_px, 0, height_px, TJPF_RGB, TJFLAG_ACCURATEDCT),
      0);
  tjDestroy(handle);
  return rgb;
}

TEST(WriteSynthSet, WritesPicturesAndAnnotationsThatBelongTogether) {
  testing::TemporaryFolder const folder;
  SynthSettings const settings{
      .train_images = 12, .val_images = 5, .width_px = 128, .height_px = 96};
  auto const report = write_synth_set(folder.path(), settings);
  EXPECT_EQ(report.images, 17);
  auto const json = nlohmann::json::parse(
      base::read_text_file(folder.path() / "annotations" / "instances_train.json"));
  ASSERT_EQ(json.at("images").size(), 12);
  ASSERT_EQ(json.at("categories").size(), 6);
  EXPECT_EQ(json.at("categories").at(4).at("name"), "star");
  EXPECT_EQ(json.at("categories").at(4).at("id"), 5);
  std::size_t annotation = 0;
  for (std::uint64_t i = 0; i < 12; ++i) {
    auto const picture = draw_picture(settings, SynthSplit::train, i);
    auto const& image = json.at("images").at(i);
    EXPECT_EQ(image.at("width"), picture.width_px);
    EXPECT_EQ(image.at("height"), picture.height_px);
    for (auto const& object : picture.objects) {
      auto const& entry = json.at("annotations").at(annotation);
      EXPECT_EQ(entry.at("id"), static_cast<std::int64_t>(++annotation));
      EXPECT_EQ(entry.at("image_id"), image.at("id"));
      EXPECT_EQ(entry.at("category_id"), object.class_index + 1);
      EXPECT_EQ(entry.at("bbox"), nlohmann::json(object.box_px));
      EXPECT_EQ(entry.at("iscrowd"), object.is_crowd ? 1 : 0);
    }
    auto const file = folder.path() / "images" / "train" / image.at("file_name").get<std::string>();
    auto const rgb = decoded(base::read_file(file), picture.width_px, picture.height_px);
    double difference = 0;
    for (std::size_t k = 0; k < rgb.size(); ++k) difference += std::abs(rgb[k] - picture.rgb[k]);
    // Quality 90 with halved colour resolution changes grainy pictures by a few levels of 255.
    EXPECT_LT(difference / static_cast<double>(rgb.size()), 12);
  }
  EXPECT_EQ(json.at("annotations").size(), annotation);
}

TEST(WriteSynthSet, GivesTheSameBytesAgainAndLeavesAFinishedSetAlone) {
  testing::TemporaryFolder const a;
  testing::TemporaryFolder const b;
  SynthSettings const settings{.train_images = 3, .val_images = 2, .width_px = 96, .height_px = 96};
  auto const report = write_synth_set(a.path(), settings);
  EXPECT_FALSE(report.was_there);
  write_synth_set(b.path(), settings);
  for (auto const* name : {"annotations/instances_train.json", "annotations/instances_val.json",
                           "images/train/000003.jpg", "images/val/000002.jpg"}) {
    EXPECT_EQ(base::read_file(a.path() / name), base::read_file(b.path() / name)) << name;
  }
  std::filesystem::remove(b.path() /
                          "annotations/instances_val.json");  // as an interrupted run leaves it
  EXPECT_FALSE(write_synth_set(b.path(), settings).was_there);
  auto const again = write_synth_set(a.path(), settings);
  EXPECT_TRUE(again.was_there);
  EXPECT_EQ(again.objects, report.objects);
}

TEST(WriteSynthSet, RefusesAnotherSetInTheFolderAndWrongSettings) {
  testing::TemporaryFolder const folder;
  SynthSettings settings{.train_images = 2, .val_images = 1, .width_px = 96, .height_px = 96};
  write_synth_set(folder.path(), settings);
  settings.seed = 5;
  try {
    write_synth_set(folder.path(), settings);
    FAIL();
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("seed 5"), std::string::npos);
  }
  settings.class_count = 9;
  EXPECT_THROW(write_synth_set(folder.path() / "x", settings), base::Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "x"));
}

}  // namespace
}  // namespace yolohpc::data
