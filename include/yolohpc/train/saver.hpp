// Saver: checkpoints and weights of a run, with what a resume has to know about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "yolohpc/base/log.hpp"
#include "yolohpc/checkpoint/store.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/data/shard_set.hpp"
#include "yolohpc/train/settings.hpp"
#include "yolohpc/train/train_state.hpp"

namespace yolohpc::train {

/// Writes through a CheckpointStore and checks, on a resume, that run and checkpoint belong
/// together.
class Saver {
 public:
  /// Collective. \throws Error  the run folder cannot be made
  Saver(TrainSettings const& settings, data::ShardSet const& train_set,
        comm::Communicator& communicator, base::Log& log);

  /// The checkpoint to go on from, or nothing. Collective.
  std::optional<checkpoint::LoadedCheckpoint> find(TrainSettings const& settings);
  /// \return  changed settings that are allowed
  /// \throws Error (usage)     a setting that may not change
  /// \throws Error (bad data)  other data than the checkpoint was made with
  std::vector<ConfigChange> check_fits(checkpoint::LoadedCheckpoint const& found,
                                       TrainSettings const& settings) const;
  /// \throws Error  checkpoints of this size can't be written here. Collective.
  void check_space(std::int64_t bytes) { store_.check_writable(bytes); }

  /// Rank 0 writes; all ranks call. A failed save is reported and training goes on.
  void checkpoint(TrainState& state, checkpoint::Quality quality);
  void best_weights(TrainState& state);
  void last_weights(TrainState& state);
  /// Waits for the writer. \throws Error  the last save failed
  void finish();
  /// Seconds that the run was held up by saves.
  double held_up_s() const { return held_up_s_; }

 private:
  base::Safetensors weights(TrainState& state) const;
  void report_failures(std::vector<checkpoint::SaveOutcome> const& outcomes);

  TrainSettings const& settings_;
  data::ShardSet const& train_set_;
  comm::Communicator& communicator_;
  base::Log& log_;
  checkpoint::CheckpointStore store_;
  double held_up_s_ = 0;
};

}  // namespace yolohpc::train
