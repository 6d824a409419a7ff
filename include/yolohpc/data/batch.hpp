// Batch: what a loader hands to the training step or the evaluation.
//
// Letters: B images, M boxes per image (padded), H W pixels.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/data/geometry.hpp"

namespace yolohpc::data {

/// Images with their boxes. All tensors are on the CPU and contiguous.
///
/// The pixel memory belongs to a pool: it is used again when the last tensor that shares it is
/// gone, so a consumer may keep a batch as long as it likes.
struct Batch {
  at::Tensor images;  ///< (B, 3, H, W) uint8, RGB, 0..255
  at::Tensor boxes;   ///< (B, M, 4) float32 cx cy w h, divided by W and H; zeros where not valid
  at::Tensor labels;  ///< (B, M) int64 class index; 0 where not valid
  at::Tensor valid;   ///< (B, M) bool: the row is a box. Boxes of an image come first
  std::vector<std::int64_t> image_ids;  ///< B, the ids of the data set
  std::vector<std::uint32_t> samples;   ///< B, positions in the data set
  std::vector<ImageGeometry> geometry;  ///< B in validation, empty in training
  /// Images of this batch that stand in for a record that could not be read. A bad mosaic partner
  /// counts when its own turn comes.
  std::int64_t bad_samples = 0;
};

/// The padded number of boxes for images with at most `count` boxes: the next of 8, 16, 32, 64,
/// ..., so that a run meets few tensor shapes.
std::int64_t padded_box_count(std::int64_t count);

}  // namespace yolohpc::data
