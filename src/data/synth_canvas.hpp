// Pictures of the drawn data set while they are being drawn: colours, textures, and the camera's
// faults.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "yolohpc/base/philox.hpp"

namespace yolohpc::data {

/// Red, green, blue, 0 to 1.
using Color = std::array<float, 3>;

Color random_color(base::Philox& random);
/// `share` of `b` in `a`.
Color mixed(Color const& a, Color const& b, float share);
/// Euclidean distance, 0 to sqrt(3).
float color_distance(Color const& a, Color const& b);

struct Canvas {
  int width_px = 0;
  int height_px = 0;
  std::vector<Color> pixels;  ///< (H, W)

  Color& at(int x, int y) { return pixels[static_cast<std::size_t>(y) * width_px + x]; }
  Color const& at(int x, int y) const { return pixels[static_cast<std::size_t>(y) * width_px + x]; }
};

/// Smooth noise, 0 to 1: octaves of interpolated lattice values. Source: the value-noise form of
/// Perlin, SIGGRAPH 1985.
class ValueNoise {
 public:
  /// \param period_px  lattice spacing of the coarsest octave
  ValueNoise(base::Philox& random, double period_px, int octaves);
  float operator()(double x, double y) const;

 private:
  float lattice(std::int64_t x, std::int64_t y, std::uint32_t octave) const;
  float octave(double x, double y, std::uint32_t octave) const;

  std::uint32_t key_;
  double period_px_;
  int octaves_;
};

/// A gradient under noise, with stripes, blotches and strokes that are no objects.
Canvas draw_background(int width_px, int height_px, base::Philox& random);

/// Blur, brightness, contrast and noise of a camera.
void expose_in_place(Canvas& canvas, base::Philox& random);

/// (H, W, 3), rounded.
std::vector<std::uint8_t> to_bytes(Canvas const& canvas);

}  // namespace yolohpc::data
