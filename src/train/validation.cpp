#include "yolohpc/train/validation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "yolohpc/loss/criterion.hpp"

namespace yolohpc::train {

double ValidationResult::fitness() const {
  constexpr double decimals = 1e5;
  return std::nearbyint(map50_95 * decimals) / decimals;
}

Validator::Validator(data::ShardSet const& val_set, TrainSettings const& settings,
                     comm::Communicator& communicator)
    : val_set_(val_set),
      settings_(settings),
      communicator_(communicator),
      source_(data::make_shard_source(val_set)) {}

eval::LossFunction validation_loss(loss::LossGains const& gains) {
  return [gains](model::HeadOutput const& output, data::Batch const& batch) {
    auto const device = output.scores.device();
    auto const loss = loss::detection_loss(
        output, {batch.boxes.to(device), batch.labels.to(device), batch.valid.to(device)},
        {.gains = gains, .assigner = {}, .normaliser = {}});
    return eval::LossParts{loss.items, loss.target_score_sum};
  };
}

ValidationResult Validator::run(model::Network& network) {
  network.set_training(false);
  eval::InferenceSettings inference;
  // A pass without gradients holds little, so twice the training share fits. Source: spec/optim.md.
  inference.loader.batch = std::max<std::int64_t>(2 * settings_.batch / communicator_.size(), 1);
  inference.loader.image_size = settings_.image_size;
  inference.loader.pipeline.workers = settings_.workers;
  inference.loader.on_bad_sample =
      settings_.fail_on_bad_sample ? data::OnBadSample::fail : data::OnBadSample::replace;
  auto const found = eval::run_inference({network, val_set_, *source_, communicator_}, inference,
                                         validation_loss(settings_.gains));
  std::vector<std::string> reasons;
  for (auto const& bad : found.bad_records) reasons.push_back(bad.reason);
  return {.coco = found.coco,
          .precision = found.metrics.mean_precision,
          .recall = found.metrics.mean_recall,
          .map50 = found.metrics.map50,
          .map50_95 = found.metrics.map50_95,
          .losses = found.losses,
          .has_objects = found.metrics.is_defined(),
          .bad_records = std::move(reasons)};
}

void fill_validation(ValidationResult const* result, monitor::EpochRow& row) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  bool const is_defined = result != nullptr && result->is_defined();
  row.precision = is_defined ? result->precision : nan;
  row.recall = is_defined ? result->recall : nan;
  row.map50 = is_defined ? result->map50 : nan;
  row.map50_95 = is_defined ? result->map50_95 : nan;
  row.coco_ap = is_defined ? result->coco.numbers[eval::AP] : nan;
  row.coco_ap50 = is_defined ? result->coco.numbers[eval::AP50] : nan;
  row.coco_ap75 = is_defined ? result->coco.numbers[eval::AP75] : nan;
  row.val_box_loss = result != nullptr ? result->losses[0] : nan;
  row.val_cls_loss = result != nullptr ? result->losses[1] : nan;
  row.val_dfl_loss = result != nullptr ? result->losses[2] : nan;
}

}  // namespace yolohpc::train
