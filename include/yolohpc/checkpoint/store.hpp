// The checkpoints of one run folder: written in the background, found, verified, pruned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yolohpc/base/log.hpp"
#include "yolohpc/base/safetensors.hpp"

namespace yolohpc::comm {
class Communicator;
}

namespace yolohpc::checkpoint {

/// Where in the run a checkpoint was taken. Files sort by `step`.
struct Position {
  std::int64_t epoch = 0;  ///< passes over the data that are complete
  std::int64_t step = 0;   ///< iterations that are complete, over the whole run
};

struct StoreSettings {
  /// Checkpoints go to run_folder/checkpoints/step-000001234.safetensors, weights beside that
  /// folder.
  std::filesystem::path run_folder;
  int keep = 2;  ///< newest checkpoints that are kept, at least 1; the best is kept beside them
};

enum class Quality { ordinary, best };

/// A checkpoint that passed verification. The same on every rank.
struct LoadedCheckpoint {
  std::filesystem::path path;
  Position position;
  base::Safetensors content;  ///< without the store's own metadata
};

/// What became of one file that was given to the background thread.
struct SaveOutcome {
  std::filesystem::path path;
  bool is_checkpoint = false;  ///< else a weights file
  std::string error;           ///< empty when the file is on disk
  std::int64_t size_bytes = 0;
  double seconds = 0;  ///< of the background thread, from pick-up to synced
};

/// Rank 0 alone touches the run folder; what it finds is told to the others.
///
/// save() and write_weights() copy the tensors to host memory and return; a thread lays out the
/// bytes, adds checksums, and writes them under a temporary name, synced, then renamed. A failed
/// save leaves the older files as they are and shows in take_outcomes(); training may go on.
class CheckpointStore {
 public:
  /// Creates the folders and removes temporaries that a killed run left. Rank 0 alone does so.
  /// \throws Error  on every rank: the folder cannot be made or `keep` is below 1
  CheckpointStore(StoreSettings settings, comm::Communicator& communicator, base::Log& log);
  CheckpointStore(CheckpointStore const&) = delete;
  CheckpointStore& operator=(CheckpointStore const&) = delete;
  /// Waits for the writer; errors that nobody fetched are logged.
  ~CheckpointStore();

  std::filesystem::path checkpoint_folder() const;
  std::filesystem::path best_weights() const;  ///< run_folder/best.safetensors
  std::filesystem::path last_weights() const;  ///< run_folder/last.safetensors

  /// Makes sure that files of `size_bytes` each can be written: room for `keep` of them, the best
  /// and the one in flight, less what is there, and a test file of that size. Collective.
  /// \throws Error  on every rank: bytes wanted and free, or the call that failed
  void check_writable(std::int64_t size_bytes);

  /// The newest checkpoint that verifies; nothing when there is none. Each damaged newer one is
  /// warned about. Collective.
  /// \throws Error (bad data)  files are there, but none verifies
  std::optional<LoadedCheckpoint> load_newest();
  /// A named file. Collective.
  /// \throws Error (bad data)  on every rank: what is damaged, and where
  LoadedCheckpoint load(std::filesystem::path const& path);

  /// Says where the run goes on, before the first save. Checkpoints with a later step (all, when
  /// `from` is empty) belong to an abandoned branch or are damaged, and are renamed to *.set-aside
  /// so that they are neither found nor counted. Collective.
  /// \throws Error  on every rank: a file cannot be renamed
  void continue_from(std::optional<Position> from);

  /// Rank 0 takes `content`, which other ranks may leave empty, and returns when it is copied. When
  /// an earlier save is still being written, waits for that first: at most one is in flight.
  /// Never throws for the disk's sake. Metadata keys that begin with "checkpoint." belong to the
  /// store. Views (flat.export_flat) are best: the copy keeps their strides and is one pass over
  /// memory; the file is row-major all the same. The copy stays allocated for the next save.
  /// \return seconds that the caller was held up
  double save(base::Safetensors const& content, Position position, Quality quality);
  /// The same for a file without retention, at `path` in the run folder (best_weights() or
  /// last_weights()).
  double write_weights(std::filesystem::path const& path, base::Safetensors const& content);

  /// What was finished since the last call, in order. Empty on ranks other than 0.
  std::vector<SaveOutcome> take_outcomes();
  /// Waits for the writer.
  /// \return what take_outcomes() would
  /// \throws Error  the last save of any file failed: the run's result is not on disk
  std::vector<SaveOutcome> finish();

 private:
  class Writer;
  StoreSettings settings_;
  comm::Communicator& communicator_;
  base::Log& log_;
  std::unique_ptr<Writer> writer_;  ///< rank 0 only
};

}  // namespace yolohpc::checkpoint
