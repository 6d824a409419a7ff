#include "yolohpc/boxes/coding.hpp"

#include <ATen/ATen.h>

namespace yolohpc::boxes {

at::Tensor expected_distances(at::Tensor const& logits, std::int64_t bins) {
  auto const probabilities = logits.unflatten(1, {4, bins}).softmax(2);
  auto const values = at::arange(bins, logits.options()).view({bins, 1});
  return (probabilities * values).sum(2);
}

at::Tensor corners_from_distances(at::Tensor const& distances, at::Tensor const& points) {
  return at::cat({points - distances.narrow(1, 0, 2), points + distances.narrow(1, 2, 2)}, 1);
}

at::Tensor distances_from_corners(at::Tensor const& corners, at::Tensor const& points) {
  return at::cat({points - corners.narrow(1, 0, 2), corners.narrow(1, 2, 2) - points}, 1);
}

at::Tensor corners_px_from_normalised(at::Tensor const& boxes, std::int64_t height_px,
                                      std::int64_t width_px) {
  auto const width = static_cast<double>(width_px);
  auto const height = static_cast<double>(height_px);
  auto const x = boxes.select(-1, 0) * width;
  auto const y = boxes.select(-1, 1) * height;
  auto const half_width = boxes.select(-1, 2) * width / 2;
  auto const half_height = boxes.select(-1, 3) * height / 2;
  return at::stack({x - half_width, y - half_height, x + half_width, y + half_height}, -1);
}

}  // namespace yolohpc::boxes
