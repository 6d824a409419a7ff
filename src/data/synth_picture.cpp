#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "yolohpc/data/synth.hpp"

#include "synth_canvas.hpp"
#include "synth_shapes.hpp"

namespace yolohpc::data {
namespace {

using base::Philox;
using Box = std::array<int, 4>;

constexpr std::uint64_t most_objects = 9;
constexpr double smallest_radius_px = 4;
constexpr double smallest_side = 0.75;       // of the largest picture
constexpr double least_visible_share = 0.6;  // of an object at the border
constexpr double most_overlap = 0.5;         // of the smaller of two boxes
constexpr float least_contrast = 0.4F;
constexpr int placement_tries = 25;
constexpr int color_tries = 20;

std::int64_t area_of(Box const& box) {
  return static_cast<std::int64_t>(box[2]) * box[3];
}

std::int64_t intersection_of(Box const& a, Box const& b) {
  int const width = std::min(a[0] + a[2], b[0] + b[2]) - std::max(a[0], b[0]);
  int const height = std::min(a[1] + a[3], b[1] + b[3]) - std::max(a[1], b[1]);
  return width > 0 && height > 0 ? static_cast<std::int64_t>(width) * height : 0;
}

// Radius as a share of the picture's longer side: tiny, middle, large.
double random_radius_share(Philox& random) {
  struct Band {
    double probability, low, high;
  };
  constexpr Band bands[] = {{0.15, 0.018, 0.03}, {0.5, 0.03, 0.09}, {0.35, 0.09, 0.24}};
  double draw = random.uniform();
  for (auto const& band : bands) {
    if (draw < band.probability) return band.low * std::pow(band.high / band.low, random.uniform());
    draw -= band.probability;
  }
  return bands[1].high;
}

class Composition {
 public:
  Composition(SynthSettings const& settings, Philox& random)
      : settings_(settings),
        random_(random),
        canvas_(draw_background(side(settings.width_px), side(settings.height_px), random)) {
    shadow_angle_ = random_.uniform(0, 2 * std::numbers::pi);
  }

  void draw() {
    if (random_.uniform() < settings_.empty_share) return;
    if (random_.uniform() < settings_.crowd_share) draw_crowd();
    for (auto left = 1 + random_.below(most_objects); left > 0; --left) draw_object();
  }

  SynthPicture finish() {
    expose_in_place(canvas_, random_);
    return {canvas_.width_px, canvas_.height_px, to_bytes(canvas_), std::move(objects_)};
  }

 private:
  int side(int largest_px) {
    int const smallest_px = static_cast<int>(std::ceil(smallest_side * largest_px));
    return smallest_px + static_cast<int>(random_.below(
                             static_cast<std::uint64_t>(largest_px - smallest_px) + 1));
  }

  int random_class() {
    return static_cast<int>(random_.below(static_cast<std::uint64_t>(settings_.class_count)));
  }

  Pose random_pose() {
    double const longer_px = std::max(canvas_.width_px, canvas_.height_px);
    return {.shape = random_class(),
            .x_px = random_.uniform(0, canvas_.width_px),
            .y_px = random_.uniform(0, canvas_.height_px),
            .radius_px = std::max(smallest_radius_px, random_radius_share(random_) * longer_px),
            .angle = random_.uniform(0, 2 * std::numbers::pi),
            .aspect = random_.uniform(0.7, 1)};
  }

  bool fits(Footprint const& footprint) const {
    bool const is_visible =
        footprint.area_px > 0 &&
        static_cast<double>(footprint.area_px) >= least_visible_share * footprint.full_area_px;
    return is_visible &&
           std::none_of(objects_.begin(), objects_.end(), [&](SynthObject const& other) {
             double const smaller =
                 static_cast<double>(std::min(area_of(other.box_px), area_of(footprint.box_px)));
             auto const shared =
                 static_cast<double>(intersection_of(other.box_px, footprint.box_px));
             return shared > (other.is_crowd ? 0 : most_overlap * smaller);
           });
  }

  // Mean of the ground on a grid in the box.
  Color ground_under(Box const& box) const {
    constexpr int grid = 4;
    Color sum{};
    for (int i = 0; i < grid * grid; ++i) {
      int const x = box[0] + box[2] * (i % grid) / grid;
      int const y = box[1] + box[3] * (i / grid) / grid;
      for (std::size_t c = 0; c < 3; ++c) sum[c] += canvas_.at(x, y)[c] / (grid * grid);
    }
    return sum;
  }

  Color contrasting_color(Color const& ground) {
    Color color = random_color(random_);
    for (int i = 0; i < color_tries && color_distance(color, ground) < least_contrast; ++i) {
      color = random_color(random_);
    }
    return color;
  }

  Paint random_paint(Color const& ground) {
    auto const first = contrasting_color(ground);
    auto const second =
        mixed(first, contrasting_color(ground), static_cast<float>(random_.uniform(0.2, 0.6)));
    constexpr Paint::Pattern patterns[] = {Paint::Pattern::plain, Paint::Pattern::shaded,
                                           Paint::Pattern::striped, Paint::Pattern::mottled};
    return {patterns[random_.below(std::size(patterns))], first, second};
  }

  void put(Pose const& pose, Footprint const& footprint, Paint const& paint) {
    double const shift_px = 0.12 * pose.radius_px;
    constexpr float shadow_strength = 0.35F;
    cast_shadow_in_place(
        canvas_, footprint, static_cast<int>(std::lround(shift_px * std::cos(shadow_angle_))),
        static_cast<int>(std::lround(shift_px * std::sin(shadow_angle_))), shadow_strength);
    paint_in_place(canvas_, pose, footprint, paint, random_);
  }

  void draw_object() {
    for (int i = 0; i < placement_tries; ++i) {
      auto const pose = random_pose();
      auto const footprint = footprint_of(pose, canvas_.width_px, canvas_.height_px);
      if (!fits(footprint)) continue;
      put(pose, footprint, random_paint(ground_under(footprint.box_px)));
      objects_.push_back({pose.shape, footprint.box_px, footprint.area_px, false});
      return;
    }
  }

  // Many small ones of one class, too many to tell apart: one region, as COCO has them.
  void draw_crowd() {
    auto pose = random_pose();
    double const spread_px = 0.16 * std::min(canvas_.width_px, canvas_.height_px);
    double const x0 = random_.uniform(spread_px, canvas_.width_px - spread_px);
    double const y0 = random_.uniform(spread_px, canvas_.height_px - spread_px);
    pose.radius_px = smallest_radius_px + 1;
    std::optional<Box> region;
    std::int64_t area_px = 0;
    for (auto left = 14 + random_.below(10); left > 0; --left) {
      pose.x_px = random_.uniform(x0 - spread_px, x0 + spread_px);
      pose.y_px = random_.uniform(y0 - spread_px, y0 + spread_px);
      pose.angle = random_.uniform(0, 2 * std::numbers::pi);
      auto const footprint = footprint_of(pose, canvas_.width_px, canvas_.height_px);
      if (footprint.area_px == 0) continue;
      put(pose, footprint, random_paint(ground_under(footprint.box_px)));
      area_px += footprint.area_px;
      region = region ? hull_of(*region, footprint.box_px) : footprint.box_px;
    }
    if (region)
      objects_.push_back({pose.shape, *region, std::min(area_px, area_of(*region)), true});
  }

  static Box hull_of(Box const& a, Box const& b) {
    int const x = std::min(a[0], b[0]);
    int const y = std::min(a[1], b[1]);
    return {x, y, std::max(a[0] + a[2], b[0] + b[2]) - x, std::max(a[1] + a[3], b[1] + b[3]) - y};
  }

  SynthSettings const& settings_;
  Philox& random_;
  Canvas canvas_;
  double shadow_angle_ = 0;
  std::vector<SynthObject> objects_;
};

}  // namespace

SynthPicture draw_picture(SynthSettings const& settings, SynthSplit split, std::uint64_t number) {
  Philox random(settings.seed, static_cast<std::uint32_t>(split), number, base::Purpose::synth);
  Composition composition(settings, random);
  composition.draw();
  return composition.finish();
}

}  // namespace yolohpc::data
