// The shapes of the drawn data set: which points are inside, and how they get onto the canvas.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "synth_canvas.hpp"

namespace yolohpc::data {

/// Where and how a shape stands.
struct Pose {
  int shape = 0;  ///< index into synth_shapes
  double x_px = 0;
  double y_px = 0;
  double radius_px = 0;  ///< of the circle around it
  double angle = 0;      ///< radians
  double aspect = 1;     ///< of discs and squares: short side over long side
};

/// True when the point (u, v), in units of the radius and turned with the shape, belongs to it.
bool is_inside(int shape, double aspect, double u, double v);

/// How a shape is painted.
struct Paint {
  enum class Pattern { plain, shaded, striped, mottled };
  Pattern pattern = Pattern::plain;
  Color first{};
  Color second{};
};

/// The pixels of a shape on the canvas: those that it covers by at least half.
struct Footprint {
  std::array<int, 4> box_px{};  ///< x y w h, w = 0 when nothing is covered
  std::int64_t area_px = 0;     ///< on the canvas
  double full_area_px = 0;      ///< also what lies beyond the border
  int left_px = 0;              ///< of `cover`
  int top_px = 0;
  int width_px = 0;
  std::vector<float>
      cover;  ///< share of each pixel that is covered, row-major, may reach beyond the border
};
Footprint footprint_of(Pose const& pose, int canvas_width_px, int canvas_height_px);

void paint_in_place(Canvas& canvas, Pose const& pose, Footprint const& footprint,
                    Paint const& paint, base::Philox& random);
/// Darkens what lies beside the shape, away from the light.
void cast_shadow_in_place(Canvas& canvas, Footprint const& footprint, int shift_x_px,
                          int shift_y_px, float strength);

}  // namespace yolohpc::data
