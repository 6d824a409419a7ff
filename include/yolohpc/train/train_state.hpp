// TrainState: all that a run carries from step to step, the step itself, and its form in a
// checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/base/safetensors.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/data/batch.hpp"
#include "yolohpc/model/network.hpp"
#include "yolohpc/monitor/timers.hpp"
#include "yolohpc/optim/ema.hpp"
#include "yolohpc/optim/optimizer.hpp"
#include "yolohpc/optim/schedule.hpp"
#include "yolohpc/parallel/flat_buffers.hpp"
#include "yolohpc/parallel/reducer.hpp"
#include "yolohpc/train/settings.hpp"
#include "yolohpc/train/step_exchange.hpp"

namespace yolohpc::train {

/// How far the run is.
struct RunPosition {
  std::int64_t epoch = 0;    ///< passes over the data that are complete
  std::int64_t step = 0;     ///< iterations of the running epoch that are complete
  std::int64_t updates = 0;  ///< optimiser updates of the whole run, skipped ones included
};

/// Sums over the iterations of the running epoch; equal on all ranks.
struct EpochSums {
  at::Tensor items;             ///< (3) float64 box cls dfl, each the mean over ranks
  std::int64_t iterations = 0;  ///< that are in `items`: those with finite losses
  std::int64_t skipped_updates = 0;
  std::int64_t bad_samples = 0;  ///< this rank's

  void reset();
};

/// The best result so far.
struct Best {
  double fitness = 0;      ///< mAP50-95 of the internal metric, rounded to five decimals
  std::int64_t epoch = 0;  ///< from 1; 0: none yet
};

/// What one iteration did.
struct StepReport {
  bool updated = false;       ///< the optimizer stepped (false while iterations are accumulated)
  bool anyone_stops = false;  ///< some rank was asked to stop; the same on all ranks
};

/// Networks, flat buffers, optimizer, schedule and counters of one run.
class TrainState {
 public:
  /// Collective only through `communicator` in step().
  TrainState(model::GraphSpec const& graph, std::int64_t classes, TrainSettings const& settings,
             TrainPlan const& plan, comm::Communicator& communicator);
  TrainState(TrainState const&) = delete;
  TrainState& operator=(TrainState const&) = delete;
  ~TrainState();

  /// One iteration over this rank's share of a global batch: forward and backward in micro-batches,
  /// sums over the ranks, and, when the schedule says so, clipping, the optimizer and the moving
  /// average.
  ///
  /// Whether the gradients were finite is read one iteration later, so that no step waits for the
  /// device. \param micro_batches  at least one; all with the same number of images \param
  /// wants_to_stop  this rank was asked to stop \throws Error (diverged)  too many updates in a row
  /// had to be skipped
  StepReport step(std::span<data::Batch const> micro_batches, bool wants_to_stop,
                  monitor::PhaseTimers& timers);

  /// Reads what the last iteration left unread. Called before counters are used or saved.
  void settle();
  /// At the end of an epoch: gradients that were accumulated and not used are summed over the
  /// ranks, so that a checkpoint can hold them. A run that stops there and one that does not do the
  /// same.
  void fold_pending_gradients();
  bool has_pending_gradients() const { return iterations_since_update_ > 0; }

  model::Network& network() { return network_; }
  model::Network& ema_network() { return ema_network_; }
  optim::Schedule const& schedule() const { return schedule_; }
  std::vector<optim::ParameterGroup> const& groups() const { return groups_; }
  /// Iterations that are complete, over the whole run.
  std::int64_t iteration() const;
  /// Mean box, cls and dfl loss of the running epoch; NaN before its first iteration.
  std::array<double, 3> mean_losses() const;
  /// Learning rates of kernels, norms and biases in the last iteration.
  std::array<double, 3> group_rates() const;

  /// Copies weights in where name and shape fit, into the averaged network as well.
  model::LoadReport load_weights(base::NamedTensors const& weights);

  /// All tensors and counters, the same for every rank count and bucket size. The tensors share
  /// memory with the run: whoever keeps them copies them.
  base::Safetensors snapshot() const;
  /// \throws Error (bad data)  something is missing or has another shape
  void restore(base::Safetensors const& content);
  /// The averaged network as a state dict; shares memory with the run.
  base::NamedTensors averaged_weights() const;
  /// Bytes of a snapshot, about.
  std::int64_t snapshot_bytes() const;

  RunPosition position;
  EpochSums sums;
  Best best;
  double elapsed_s = 0;  ///< of all parts of the run up to this process

 private:
  void forward_backward(std::span<data::Batch const> micro_batches, bool reduces,
                        bool wants_to_stop, monitor::PhaseTimers& timers);
  void update(monitor::PhaseTimers& timers);
  void adopt_averages();

  comm::Communicator& communicator_;
  loss::LossSettings loss_settings_;
  bool channels_last_;
  at::Device device_;
  optim::Schedule schedule_;
  optim::StepRule step_rule_;
  model::Network network_;
  model::Network ema_network_;
  std::vector<optim::ParameterGroup> groups_;
  std::unique_ptr<parallel::FlatBuffers> flat_;
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Ema> ema_;
  std::unique_ptr<parallel::Reducer> reducer_;
  at::Tensor unread_found_inf_;
  at::Tensor unread_items_;
  std::int64_t skipped_in_a_row_ = 0;
  std::int64_t iterations_since_update_ = 0;
};

}  // namespace yolohpc::train
