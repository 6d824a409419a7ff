// Writer: the background thread that turns snapshots into files.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "yolohpc/checkpoint/store.hpp"

namespace yolohpc::checkpoint {

/// One file to be written. The tensors are a snapshot that nobody else changes.
struct WriteJob {
  std::filesystem::path path;
  base::Safetensors content;
  std::optional<Position> position;  ///< set for a checkpoint
  Quality quality = Quality::ordinary;
};

/// Writes jobs in the order they came. Jobs of one kind (checkpoints, or one weights file) share a
/// snapshot buffer, so a job waits for the one before of its kind to be on disk.
class CheckpointStore::Writer {
 public:
  explicit Writer(int keep) : keep_(keep), thread_([this] { run(); }) {}
  /// Finishes what is queued.
  ~Writer();

  /// Copies the tensors of `job` and queues it. \return seconds the caller was held up
  double submit(WriteJob job);
  std::vector<SaveOutcome> take_outcomes();
  void wait_until_idle();
  /// Texts of the kinds whose last write failed.
  std::string last_failures();

 private:
  void run();
  SaveOutcome write(WriteJob const& job);
  bool has_queued(std::string const& kind) const;
  base::NamedTensors snapshot(std::string const& kind, base::NamedTensors const& tensors);

  int keep_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WriteJob> queue_;  ///< the front is being written and stays until it is done
  std::vector<SaveOutcome> outcomes_;
  std::map<std::string, std::string> last_error_;        ///< by kind
  std::map<std::string, base::NamedTensors> snapshots_;  ///< by kind; used by the submitting thread
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace yolohpc::checkpoint
