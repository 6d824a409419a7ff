// Trainer: the sequence of events of a training run.
#pragma once

#include <memory>
#include <string>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/log.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/train/settings.hpp"

namespace yolohpc::train {

/// The two ways in which ranks talk. On CPUs both are the same.
struct TrainComms {
  comm::Communicator& host;     ///< bytes and host tensors
  comm::Communicator& tensors;  ///< tensors on the device of the network
};

struct TrainOutcome {
  base::ExitCode code = base::ExitCode::done;  ///< done or stopped_early
  std::string json;                            ///< machine-readable result, on rank 0
};

/// One training run, fresh or resumed. Collective in every call.
class Trainer {
 public:
  /// Looks at the run folder, opens the data, builds the network, and goes to where a checkpoint
  /// left off. \throws Error  usage: settings, a used folder; bad data: shards, checkpoints,
  /// weights
  Trainer(TrainSettings settings, TrainComms comms, base::Log& log);
  ~Trainer();
  Trainer(Trainer const&) = delete;
  Trainer& operator=(Trainer const&) = delete;

  /// Trains to the end, or until a signal, the wall-clock limit or max_steps.
  /// \throws Error  diverged; bad data under fail_on_bad_sample; communication; the last save
  /// failed
  TrainOutcome run();

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace yolohpc::train
