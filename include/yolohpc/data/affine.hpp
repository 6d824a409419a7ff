// The random affine map of training: its matrix, its effect on boxes and on pixels.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "yolohpc/data/mosaic.hpp"

namespace yolohpc::data {

/// Row-major 3 x 3, float32; the last row is 0 0 1.
using Matrix = std::array<float, 9>;

/// The numbers of one map.
struct AffineDraw {
  double angle_deg = 0;
  double scale = 1;
  double shear_x_deg = 0;
  double shear_y_deg = 0;
  double centre_x = 0.5;  ///< where the middle of the input goes, as a share of the output
  double centre_y = 0.5;
};

/// M = T H R C in float32: moves the middle of the input to the origin, turns and scales, shears,
/// moves to the drawn centre. Source: spec/data.md section 5.
Matrix affine_matrix(AffineDraw const& draw, Size input, Size output);

/// The upright hull of the four mapped corners, float32.
Corners mapped_box(Corners const& box, Matrix const& matrix);
/// A box cut at the edges of a picture.
Corners clipped_box(Corners const& box, Size picture);
/// Whether a box is still worth training on: more than two pixels wide and high, more than a tenth
/// of its area left, less than 100 times longer than wide. Strict comparisons in float32.
///
/// \param before  on the canvas, not yet scaled
/// \param after   mapped and clipped
///
/// Source: spec/data.md section 5.
bool keeps_box(Corners const& before, Corners const& after, float scale);

/// Boxes of a canvas through the map: mapped, clipped to `output`, the unfit left out.
std::vector<LabelledBox> mapped_boxes(std::span<LabelledBox const> boxes, Matrix const& matrix,
                                      double scale, Size output);

/// Makes the rows of a warped canvas one by one.
class RowSampler {
 public:
  virtual ~RowSampler() = default;
  /// Row `y` of the output: packed pixels R | G << 8 | B << 16, top byte unspecified.
  /// \param out  as many as the output is wide
  virtual void sample_row(int y, std::uint32_t* out) = 0;
};

struct WarpSettings {
  Matrix matrix{};
  Size output;
  bool flip_x = false;  ///< mirror the result left to right
  bool flip_y = false;  ///< mirror the result upside down
};

/// dst(x, y) = src(M^-1 (x, y)) on integer pixel indices, bilinear, rounded half up. A tap outside
/// the canvas or on an uncovered part of it counts as the border colour; each tap is taken from the
/// tile it lies in. A matrix without rotation and shear takes a separable path. The pixels under
/// the canvas must outlive the sampler.
///
/// \throws Error  the matrix has no inverse
///
/// Source: spec/data.md section 5.
std::unique_ptr<RowSampler> make_row_sampler(Canvas const& canvas, WarpSettings const& settings);

}  // namespace yolohpc::data
