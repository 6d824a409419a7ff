// What the head of a network hands to the loss and to the decoder.
//
// Letters: B images, A anchor points, C classes, R bins of a distance.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/boxes/anchors.hpp"

namespace yolohpc::model {

using Level = boxes::GridLevel;

/// Raw outputs. Anchor points are ordered by level, inside a level row by row.
struct HeadOutput {
  at::Tensor boxes;   ///< (B, 4 R, A) logits of distances; channel = side * R + bin, sides l t r b
  at::Tensor scores;  ///< (B, C, A) logits
  std::vector<Level> levels;  ///< finest first; sum of height * width is A
};

/// Bins of one distance (R).
inline constexpr std::int64_t distance_bins = 16;

/// Boxes and probabilities: (B, 4 + C, A), rows cx cy w h in input pixels, then sigmoid(scores).
/// float32. Source: spec/model.md, section 5.
at::Tensor decode(HeadOutput const& output);

}  // namespace yolohpc::model
