// What ranks tell each other once per iteration beside gradients: running statistics, losses,
// wishes to stop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/base/named_tensors.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::train {

/// Lays the floating-point buffers of a network (running means and variances) into one flat tensor
/// and averages it over the ranks in every iteration, in one message that travels during the
/// backward pass.
///
/// So all ranks hold the same statistics at every step boundary: validation and checkpoints need no
/// further exchange, and a run that is stopped anywhere goes on with the same bits. In training a
/// batch norm never reads them, so the losses are those of ranks that keep their own.
class StepExchange {
 public:
  /// What every rank contributes to an iteration.
  struct Contribution {
    at::Tensor items;  ///< (3) float32 box cls dfl of this rank's images
    bool wants_to_stop = false;
  };

  /// Replaces the storage of the floating-point `buffers` (values are kept).
  StepExchange(base::NamedTensors const& buffers, comm::Communicator& communicator);

  /// (S) all running statistics, contiguous.
  at::Tensor const& statistics() const { return statistics_; }

  /// After the last forward pass of an iteration, before its backward pass.
  void begin(Contribution const& mine);
  /// After the backward pass. A statistic that is not finite anywhere (one bad batch) gets back the
  /// value it had before.
  void finish();

  /// (3) float32 mean of the items over the ranks in the iteration that was finished last.
  at::Tensor mean_items() const;
  /// True when any rank wanted to stop in the iteration that was finished last; same on all ranks.
  bool anyone_stops() const;

  /// After statistics() was written from outside (resume).
  void accept_statistics();

 private:
  comm::Communicator& communicator_;
  std::int64_t statistics_count_ = 0;
  at::Tensor message_;     // (S + items + 1)
  at::Tensor statistics_;  // view of message_
  at::Tensor tail_;        // view of message_
  at::Tensor last_good_;   // (S)
  std::unique_ptr<comm::Pending> pending_;
};

}  // namespace yolohpc::train
