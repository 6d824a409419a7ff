#include "yolohpc/loss/criterion.hpp"

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/boxes/anchors.hpp"
#include "yolohpc/boxes/coding.hpp"
#include "yolohpc/boxes/iou.hpp"

namespace yolohpc::loss {
namespace {

using model::distance_bins;

/// Distances end a little before the last bin, so that two bins always surround them.
constexpr double longest_distance = static_cast<double>(distance_bins - 1) - 0.01;

/// Predictions in float32 and where their points are.
struct Predictions {
  at::Tensor logits;      ///< (B, 4 R, A)
  at::Tensor scores;      ///< (B, C, A)
  at::Tensor corners;     ///< (B, 4, A) cells
  at::Tensor points;      ///< (2, A) cells
  at::Tensor strides_px;  ///< (A)
};

Predictions read(model::HeadOutput const& output) {
  auto const anchors = boxes::make_anchor_points(output.levels, output.boxes.device());
  auto const logits = output.boxes.to(at::kFloat);
  YOLOHPC_CHECK(logits.dim() == 3 && logits.size(1) == 4 * distance_bins &&
                    logits.size(2) == anchors.points.size(1),
                "predicted boxes have shape ", logits.sizes(), ", the levels have ",
                anchors.points.size(1), " cells: (B, 64, cells) is needed.");
  auto const distances = boxes::expected_distances(logits, distance_bins);
  return {logits, output.scores.to(at::kFloat),
          boxes::corners_from_distances(distances, anchors.points), anchors.points,
          anchors.strides_px};
}

at::Tensor boxes_in_px(Targets const& targets, std::vector<model::Level> const& levels) {
  auto const& finest = levels.front();
  return boxes::corners_px_from_normalised(targets.boxes, finest.height * finest.stride_px,
                                           finest.width * finest.stride_px);
}

Assignment assign_boxes(Predictions const& predictions, at::Tensor const& boxes_px,
                        Targets const& targets, double smallest_side_px,
                        AssignerSettings const& settings) {
  // An all-zero row is padding even when it is marked valid (spec/loss.md, section 1).
  auto const valid = targets.valid.logical_and(boxes_px.sum(-1) > 0);
  return assign({.predicted_px = predictions.corners.detach() * predictions.strides_px,
                 .scores = predictions.scores.detach(),
                 .points_px = predictions.points * predictions.strides_px,
                 .boxes_px = boxes_px,
                 .labels = targets.labels,
                 .valid = valid,
                 .smallest_side_px = smallest_side_px},
                settings);
}

/// (B, 4, A) corners in cells of the box that each point learns; zeros when the batch has no rows.
at::Tensor assigned_corners(at::Tensor const& boxes_px, Assignment const& assignment,
                            at::Tensor const& strides_px) {
  auto const images = boxes_px.size(0);
  auto const points = assignment.box_index.size(1);
  if (boxes_px.size(1) == 0) return at::zeros({images, 4, points}, boxes_px.options());
  auto const index = assignment.box_index.unsqueeze(1).expand({images, 4, points});
  return boxes_px.transpose(1, 2).gather(2, index) / strides_px;
}

/// Sum of BCE over classes; the target is `weight` at the label and 0 elsewhere, so that
/// BCE = softplus(x) - x t needs the target at one class only.
at::Tensor class_sum(at::Tensor const& scores, Assignment const& assignment) {
  auto const at_label = scores.gather(1, assignment.label.unsqueeze(1)).squeeze(1);
  auto const background = at::softplus(scores).sum();
  return background - (at_label * assignment.weight).sum();
}

at::Tensor box_sum(at::Tensor const& corners, at::Tensor const& target, at::Tensor const& weight) {
  auto const iou =
      boxes::complete_iou(boxes::split_corners(corners, 1), boxes::split_corners(target, 1));
  return ((1 - iou) * weight).sum();
}

/// -(wl logp_j + wr logp_j+1) = logsumexp(x) - (wl x_j + wr x_j+1), and the two weights are what a
/// triangle of half-width 1 around the distance leaves on the bins.
at::Tensor distribution_sum(Predictions const& predictions, at::Tensor const& target,
                            at::Tensor const& weight) {
  auto const distances = boxes::distances_from_corners(target, predictions.points)
                             .clamp_(0, longest_distance)
                             .unsqueeze(2);  // (B, 4, 1, A)
  auto const bins = at::arange(distance_bins, target.options()).view({distance_bins, 1});
  auto const shares = (bins - distances).abs_().neg_().add_(1).clamp_min_(0);  // (B, 4, R, A)
  auto const logits = predictions.logits.unflatten(1, {4, distance_bins});
  auto const per_side = logits.logsumexp(2) - (logits * shares).sum(2);  // (B, 4, A)
  return (per_side.mean(1) * weight).sum();
}

}  // namespace

Loss detection_loss(model::HeadOutput const& output, Targets const& targets,
                    LossSettings const& settings) {
  auto const predictions = read(output);
  auto const& levels = output.levels;
  auto const boxes_px = boxes_in_px(targets, levels);
  // The floor of the candidate test is the second stride (spec/loss.md, section 3, rule 1).
  auto const smallest_px = static_cast<double>(levels[levels.size() > 1 ? 1 : 0].stride_px);
  auto const assignment =
      assign_boxes(predictions, boxes_px, targets, smallest_px, settings.assigner);
  auto const target = assigned_corners(boxes_px, assignment, predictions.strides_px);

  auto const score_sum = assignment.weight.sum();
  auto const divisor =
      settings.normaliser ? settings.normaliser(score_sum) : score_sum.clamp_min(1);
  auto const& gains = settings.gains;
  auto const parts =
      at::stack({box_sum(predictions.corners, target, assignment.weight) * gains.box,
                 class_sum(predictions.scores, assignment) * gains.cls,
                 distribution_sum(predictions, target, assignment.weight) * gains.dfl});
  auto const items = parts / divisor;
  auto const batch = static_cast<double>(output.scores.size(0));
  return {items.sum() * batch, items.detach(), score_sum};
}

}  // namespace yolohpc::loss
