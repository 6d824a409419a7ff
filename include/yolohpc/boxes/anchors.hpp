// Anchor points: the centres of the cells of all feature maps.
//
// Letters: A anchor points.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yolohpc::boxes {

/// One feature map: cells and the pixels that a cell spans.
struct GridLevel {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t stride_px = 0;
};

struct AnchorPoints {
  at::Tensor points;      ///< (2, A) float32 x + 0.5, y + 0.5 in cells of the level
  at::Tensor strides_px;  ///< (A) float32
};

/// Points of all levels, in the order of `levels`; inside a level row by row. Filled on `device`
/// without a copy from the host. Source: spec/model.md, section 5.
AnchorPoints make_anchor_points(std::vector<GridLevel> const& levels, at::Device device);

}  // namespace yolohpc::boxes
