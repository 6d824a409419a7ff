// Box coding: distributions over bins, distances from anchor points, corners.
//
// Letters: B images, A anchor points, R bins of a distance.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace yolohpc::boxes {

/// The mean of each distribution: (B, 4 R, A) logits -> (B, 4, A) distances l t r b in cells, in
/// [0, R - 1].
at::Tensor expected_distances(at::Tensor const& logits, std::int64_t bins);

/// (B, 4, A) distances and (2, A) points -> (B, 4, A) corners x1 y1 x2 y2 in cells.
at::Tensor corners_from_distances(at::Tensor const& distances, at::Tensor const& points);

/// (B, 4, A) corners and (2, A) points -> (B, 4, A) distances l t r b.
at::Tensor distances_from_corners(at::Tensor const& corners, at::Tensor const& points);

/// (B, M, 4) cx cy w h as parts of the input -> (B, M, 4) corners x1 y1 x2 y2 in pixels.
at::Tensor corners_px_from_normalised(at::Tensor const& boxes, std::int64_t height_px,
                                      std::int64_t width_px);

}  // namespace yolohpc::boxes
