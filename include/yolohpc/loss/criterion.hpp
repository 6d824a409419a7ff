// The training loss of a detector: boxes, classes and distance distributions.
//
// Letters: B images, A anchor points, C classes, M boxes per image (padded), R bins of a distance.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

#include "yolohpc/loss/assigner.hpp"
#include "yolohpc/model/head_output.hpp"

namespace yolohpc::loss {

/// True boxes of a batch, padded to M rows per image, on the device of the predictions.
struct Targets {
  at::Tensor boxes;  ///< (B, M, 4) float32 cx cy w h as parts of the network input; zero in padding
  at::Tensor labels;  ///< (B, M) int64, below C; zero in padding
  at::Tensor valid;   ///< (B, M) bool
};

struct LossGains {
  double box = 7.5;
  double cls = 0.5;
  double dfl = 1.5;
};

struct LossSettings {
  LossGains gains;
  AssignerSettings assigner;
  /// What the sums are divided by, from the sum of target scores (both scalars on the device).
  /// Empty: the sum itself, at least 1, which makes the loss of each rank its own (spec/loss.md,
  /// section 4).
  std::function<at::Tensor(at::Tensor const& target_score_sum)> normaliser;
};

struct Loss {
  at::Tensor total;  ///< scalar to differentiate: B * sum(items)
  at::Tensor items;  ///< (3) box cls dfl with gains, without the batch factor; no gradient
  at::Tensor target_score_sum;  ///< scalar, no gradient
};

/// The loss of a batch; float32 whatever the type of the predictions. Every step is an operation
/// with a shape that depends on shapes alone, and nothing is read back from the device, so a CUDA
/// graph can hold it.
///
/// A batch without any box gives box = dfl = 0, with zero gradients.
/// \throws Error  shapes of predictions and targets do not belong together
/// Source: spec/loss.md; task-aligned assignment: Feng et al., arXiv:2108.07755; distribution focal
/// loss: Li et al., arXiv:2006.04388.
Loss detection_loss(model::HeadOutput const& output, Targets const& targets,
                    LossSettings const& settings = {});

}  // namespace yolohpc::loss
