// Validation of a network on a packed split, by all ranks: COCO numbers, training metrics, losses.
//
// Letters: B images of a batch, C classes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/boxes/nms.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/data/batch.hpp"
#include "yolohpc/data/loader.hpp"
#include "yolohpc/data/sample_source.hpp"
#include "yolohpc/data/shard_set.hpp"
#include "yolohpc/eval/coco.hpp"
#include "yolohpc/eval/coco_files.hpp"
#include "yolohpc/eval/metrics.hpp"
#include "yolohpc/model/network.hpp"

namespace yolohpc::eval {

/// The losses of one batch.
struct LossParts {
  at::Tensor items;             ///< (3) box cls dfl, divided by max(target_score_sum, 1)
  at::Tensor target_score_sum;  ///< scalar
};
/// \param output  of the whole batch, on the device of the network
/// \param batch   as the loader gave it, on the CPU
using LossFunction = std::function<LossParts(model::HeadOutput const& output, data::Batch const&)>;

struct InferenceSettings {
  /// With the default max_detections the limit rises to the largest number of labels in an image.
  boxes::NmsSettings nms;
  data::ValLoaderSettings loader;  ///< rank and size are taken from the communicator
  CocoSettings coco;
  bool keeps_predictions = false;
};

/// The parts of a validation that outlive it.
struct InferenceSubject {
  model::Network& network;           ///< in evaluation mode
  data::ShardSet const& set;         ///< the categories in the order of the class indices
  data::SampleSource const& source;  ///< of `set`
  comm::Communicator& communicator;
};

/// The same on all ranks, where nothing else is said.
struct InferenceResult {
  CocoResults coco;
  DetectionMetrics metrics;  ///< in network pixels
  /// box cls dfl of the whole set as if it were one batch; 0 without a loss function.
  std::array<double, 3> losses{};
  /// Rank 0, when asked for: by image in the order of the set, then by falling confidence.
  std::vector<NamedDetection> predictions;
  std::vector<data::BadRecord> bad_records;  ///< of this rank
  double data_wait_s = 0;                    ///< of this rank
};

/// Runs the network over the set and measures what it finds. Collective; a rank may have no image.
///
/// Boxes go back to original pixels, are clipped, and are rounded to the decimals of results files,
/// so that scoring a file of the predictions gives the same numbers. Class index k is reported as
/// the id of category k. Every image has to be met exactly once. On the CPU the images of a batch
/// pass through the network one by one, so that COCO numbers and metrics do not depend on batch
/// size or rank count.
///
/// \param loss  may be empty; called for each batch
/// \throws Error (usage)  the network has another number of classes than the set
/// \throws Error          a setting out of range; an image missing or repeated
InferenceResult run_inference(InferenceSubject const& subject, InferenceSettings const& settings,
                              LossFunction const& loss = {});

}  // namespace yolohpc::eval
