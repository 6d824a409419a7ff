#include <ATen/ATen.h>

#include "yolohpc/boxes/anchors.hpp"
#include "yolohpc/boxes/coding.hpp"
#include "yolohpc/model/head_output.hpp"

namespace yolohpc::model {

at::Tensor decode(HeadOutput const& output) {
  auto const anchors = boxes::make_anchor_points(output.levels, output.boxes.device());
  auto const logits = output.boxes.to(at::kFloat);
  auto const distances = boxes::expected_distances(logits, distance_bins);
  auto const corners = boxes::corners_from_distances(distances, anchors.points);
  auto const low = corners.narrow(1, 0, 2);
  auto const high = corners.narrow(1, 2, 2);
  auto const boxes_px = at::cat({(low + high) / 2, high - low}, 1) * anchors.strides_px;
  return at::cat({boxes_px, output.scores.to(at::kFloat).sigmoid()}, 1);
}

}  // namespace yolohpc::model
