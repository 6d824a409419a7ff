// Overlap of boxes: complete IoU of pairs, with and without gradient.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace yolohpc::boxes {

/// Corners of boxes, one tensor per coordinate; all four broadcast together.
struct Corners {
  at::Tensor x1, y1, x2, y2;
};

/// The columns of (..., 4) corners, or the rows of (B, 4, A) with dim = 1. Views.
Corners split_corners(at::Tensor const& corners, std::int64_t dim = -1);

/// Complete IoU of matching pairs.
///
///     ciou  = iou - d^2 / c^2 - alpha v
///     v     = (4 / pi^2) (atan(w_b / h_b) - atan(w_a / h_a))^2
///     alpha = v / (1 - iou + v),   constant in the backward pass
///
/// d: distance of the two centres; c: diagonal of the smallest enclosing box. 1e-7 is added to the
/// heights, to the union, to c^2 and to the denominator of alpha, as in spec/loss.md, section 6.
///
/// \param a  (..., 4) float32 corners x1 y1 x2 y2, pixels or grid units
/// \param b  (..., 4) like `a`, of a shape that broadcasts with it
/// \return   (...) float32, no unit, at most 1
/// \throws Error  the last dimension is not 4, or a type is not float32 or float64
/// Source: Zheng et al., arXiv:1911.08287.
at::Tensor complete_iou(at::Tensor const& a, at::Tensor const& b);

/// The same from split corners, without the checks.
at::Tensor complete_iou(Corners const& a, Corners const& b);

/// atan(w / h) with the same 1e-7, the only costly term: boxes that meet many others have it
/// computed once.
at::Tensor aspect_angle(Corners const& box);
/// Complete IoU with the angles given. Beside them it only adds, multiplies, divides and compares,
/// so a pair has the same value in whatever batch it is computed.
at::Tensor complete_iou(Corners const& a, at::Tensor const& angle_a, Corners const& b,
                        at::Tensor const& angle_b);

}  // namespace yolohpc::boxes
