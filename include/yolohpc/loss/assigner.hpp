// Task-aligned assignment: which anchor point learns which true box, and how strongly.
//
// Letters: B images, A anchor points, C classes, M boxes per image (padded).
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace yolohpc::loss {

/// Source of the constants: spec/loss.md, section 3.
struct AssignerSettings {
  std::int64_t top_k = 10;
  /// Pairs (B * boxes * A) that are held at once; boxes beyond it are taken in turns, with equal
  /// results. 0: what suits the device (see assigner.cpp).
  std::int64_t pairs_at_once = 0;
};

struct AssignerInput {
  at::Tensor predicted_px;  ///< (B, 4, A) float32 x1 y1 x2 y2
  at::Tensor scores;        ///< (B, C, A) float32 logits
  at::Tensor points_px;     ///< (2, A) float32 x y
  at::Tensor boxes_px;      ///< (B, M, 4) float32 x1 y1 x2 y2
  at::Tensor labels;        ///< (B, M) int64
  at::Tensor valid;         ///< (B, M) bool
  double smallest_side_px;  ///< shorter sides count as this long in the candidate test
};

struct Assignment {
  at::Tensor foreground;  ///< (B, A) bool
  at::Tensor box_index;   ///< (B, A) int64 row of the assigned box; 0 in the background
  at::Tensor label;       ///< (B, A) int64 class of the assigned box; of box 0 in the background
  at::Tensor weight;      ///< (B, A) float32 soft score t; 0 in the background
};

/// No gradient flows through it. A box with fewer than `top_k` anchor points of positive metric
/// gets those only; the zero-metric points that would fill its list are never selected (their
/// weight would be 0). Source: spec/loss.md, section 3, rules 1 to 6.
Assignment assign(AssignerInput const& input, AssignerSettings const& settings = {});

}  // namespace yolohpc::loss
