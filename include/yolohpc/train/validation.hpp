// Validation inside a training run: all ranks, the averaged network, COCO numbers, metrics and
// losses.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/data/sample_source.hpp"
#include "yolohpc/data/shard_set.hpp"
#include "yolohpc/eval/coco.hpp"
#include "yolohpc/eval/inference.hpp"
#include "yolohpc/model/network.hpp"
#include "yolohpc/monitor/results_csv.hpp"
#include "yolohpc/train/settings.hpp"

namespace yolohpc::train {

/// Equal on all ranks.
struct ValidationResult {
  eval::CocoResults coco;
  double precision = 0;
  double recall = 0;
  double map50 = 0;
  double map50_95 = 0;
  std::array<double, 3> losses{};  ///< box cls dfl, mean over batches

  bool has_objects = false;
  std::vector<std::string> bad_records;  ///< images of this rank that could not be read: why

  /// False when the set has no object: then there is no score at all.
  bool is_defined() const { return has_objects; }
  /// mAP50-95 of the internal metric, rounded to five decimals. Source: spec/optim.md, section 8.
  double fitness() const;
};

/// Evaluates networks on one split. Collective.
class Validator {
 public:
  /// `val_set` must outlive it.
  Validator(data::ShardSet const& val_set, TrainSettings const& settings,
            comm::Communicator& communicator);
  /// Leaves the network in evaluation mode.
  ValidationResult run(model::Network& network);

 private:
  data::ShardSet const& val_set_;
  TrainSettings const& settings_;
  comm::Communicator& communicator_;
  std::unique_ptr<data::SampleSource> source_;
};

/// The losses of a validation batch, in the form that eval asks for.
eval::LossFunction validation_loss(loss::LossGains const& gains);

/// Puts the validation columns into a row; without a result, or an undefined one, they are NaN.
void fill_validation(ValidationResult const* result, monitor::EpochRow& row);

}  // namespace yolohpc::train
