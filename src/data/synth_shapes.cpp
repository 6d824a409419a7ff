#include "synth_shapes.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "yolohpc/data/synth.hpp"

namespace yolohpc::data {
namespace {

using std::numbers::pi;

// The angle in a wedge of `count` equal ones around the centre, counted from the middle of the
// wedge.
double folded_angle(double u, double v, int count) {
  double const wedge = 2 * pi / count;
  double const angle = std::atan2(v, u);
  return angle - wedge * std::round(angle / wedge);
}

// Corners at radius 1, one of them on the u axis.
bool in_regular_polygon(double u, double v, int corners) {
  // The nearest edge's middle lies half a wedge beside a corner.
  double const half_wedge = pi / corners;
  double const angle = half_wedge - std::fabs(folded_angle(u, v, corners));
  return std::hypot(u, v) * std::cos(angle) <= std::cos(half_wedge);
}

bool in_star(double u, double v) {
  constexpr int tips = 5;
  constexpr double notch_radius = 0.45;
  double const angle = std::fabs(folded_angle(u, v, tips));
  double const radius = std::hypot(u, v);
  double const x = radius * std::cos(angle);
  double const y = radius * std::sin(angle);
  // The edge from the tip (1, 0) to the notch; inside is towards the centre.
  double const notch_x = notch_radius * std::cos(pi / tips);
  double const notch_y = notch_radius * std::sin(pi / tips);
  return (x - 1) * notch_y - y * (notch_x - 1) <= 0;
}

bool in_cross(double u, double v) {
  constexpr double half_arm = 0.3;
  constexpr double reach = 0.95;
  double const far = std::max(std::fabs(u), std::fabs(v));
  double const near = std::min(std::fabs(u), std::fabs(v));
  return near <= half_arm && far <= reach;
}

bool in_crescent(double u, double v) {
  constexpr double bite_radius = 0.85;
  constexpr double bite_shift = 0.5;
  return std::hypot(u, v) <= 1 && std::hypot(u - bite_shift, v) > bite_radius;
}

Color color_of(Paint const& paint, double u, double v, float noise) {
  constexpr double stripes_per_radius = 2.5;
  switch (paint.pattern) {
    case Paint::Pattern::shaded:
      return mixed(paint.first, paint.second,
                   static_cast<float>(std::clamp(0.5 + 0.5 * u, 0.0, 1.0)));
    case Paint::Pattern::striped:
      return std::sin(pi * stripes_per_radius * v) > 0 ? paint.first : paint.second;
    case Paint::Pattern::mottled:
      return mixed(paint.first, paint.second, noise);
    case Paint::Pattern::plain:
      break;
  }
  return paint.first;
}

struct Turn {
  explicit Turn(Pose const& pose)
      : x0(pose.x_px),
        y0(pose.y_px),
        cosine(std::cos(pose.angle) / pose.radius_px),
        sine(std::sin(pose.angle) / pose.radius_px) {}
  double u(double x, double y) const { return cosine * (x - x0) + sine * (y - y0); }
  double v(double x, double y) const { return -sine * (x - x0) + cosine * (y - y0); }

  double x0, y0, cosine, sine;
};

float pixel_cover(Pose const& pose, Turn const& turn, int x, int y) {
  constexpr int samples = 4;
  int hits = 0;
  for (int i = 0; i < samples * samples; ++i) {
    double const px = x + (i % samples + 0.5) / samples;
    double const py = y + (i / samples + 0.5) / samples;
    hits += is_inside(pose.shape, pose.aspect, turn.u(px, py), turn.v(px, py)) ? 1 : 0;
  }
  return static_cast<float>(hits) / (samples * samples);
}

}  // namespace

bool is_inside(int shape, double aspect, double u, double v) {
  constexpr double square_half_side = 0.78;
  constexpr double ring_hole = 0.55;
  switch (shape) {
    case 0:
      return std::hypot(u, v / aspect) <= 1;
    case 1:
      return in_cross(u, v);
    case 2:
      return in_regular_polygon(u, v, 3);
    case 3: {
      double const radius = std::hypot(u, v);
      return radius <= 1 && radius >= ring_hole;
    }
    case 4:
      return in_star(u, v);
    case 5:
      return std::fabs(u) <= square_half_side && std::fabs(v) <= square_half_side * aspect;
    case 6:
      return in_crescent(u, v);
    default:
      return in_regular_polygon(u, v, 6);
  }
}

Footprint footprint_of(Pose const& pose, int canvas_width_px, int canvas_height_px) {
  constexpr float half = 0.5F;
  Turn const turn(pose);
  Footprint result;
  result.left_px = static_cast<int>(std::floor(pose.x_px - pose.radius_px));
  result.top_px = static_cast<int>(std::floor(pose.y_px - pose.radius_px));
  result.width_px = static_cast<int>(std::ceil(2 * pose.radius_px)) + 2;
  int x_low = canvas_width_px, y_low = canvas_height_px, x_high = -1, y_high = -1;
  for (int row = 0; row < result.width_px; ++row) {
    for (int column = 0; column < result.width_px; ++column) {
      int const x = result.left_px + column;
      int const y = result.top_px + row;
      float const cover = pixel_cover(pose, turn, x, y);
      result.cover.push_back(cover);
      result.full_area_px += cover;
      bool const is_outside = x < 0 || y < 0 || x >= canvas_width_px || y >= canvas_height_px;
      if (is_outside || cover < half) continue;
      ++result.area_px;
      x_low = std::min(x_low, x);
      y_low = std::min(y_low, y);
      x_high = std::max(x_high, x);
      y_high = std::max(y_high, y);
    }
  }
  if (result.area_px > 0) result.box_px = {x_low, y_low, x_high - x_low + 1, y_high - y_low + 1};
  return result;
}

void paint_in_place(Canvas& canvas, Pose const& pose, Footprint const& footprint,
                    Paint const& paint, base::Philox& random) {
  Turn const turn(pose);
  ValueNoise const noise(random, std::max(3.0, pose.radius_px / 2), 2);
  for (std::size_t i = 0; i < footprint.cover.size(); ++i) {
    int const x = footprint.left_px + static_cast<int>(i) % footprint.width_px;
    int const y = footprint.top_px + static_cast<int>(i) / footprint.width_px;
    bool const is_outside = x < 0 || y < 0 || x >= canvas.width_px || y >= canvas.height_px;
    if (is_outside || footprint.cover[i] == 0) continue;
    auto const color =
        color_of(paint, turn.u(x + 0.5, y + 0.5), turn.v(x + 0.5, y + 0.5), noise(x, y));
    canvas.at(x, y) = mixed(canvas.at(x, y), color, footprint.cover[i]);
  }
}

void cast_shadow_in_place(Canvas& canvas, Footprint const& footprint, int shift_x_px,
                          int shift_y_px, float strength) {
  for (std::size_t i = 0; i < footprint.cover.size(); ++i) {
    int const x = footprint.left_px + static_cast<int>(i) % footprint.width_px + shift_x_px;
    int const y = footprint.top_px + static_cast<int>(i) / footprint.width_px + shift_y_px;
    if (x < 0 || y < 0 || x >= canvas.width_px || y >= canvas.height_px) continue;
    canvas.at(x, y) = mixed(canvas.at(x, y), Color{}, strength * footprint.cover[i]);
  }
}

}  // namespace yolohpc::data
