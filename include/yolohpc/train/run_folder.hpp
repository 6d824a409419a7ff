// The run folder: whether it may be used, and what goes on from it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "yolohpc/base/log.hpp"
#include "yolohpc/checkpoint/store.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/train/settings.hpp"

namespace yolohpc::train {

/// Names of the files in a run folder that other modules do not fix.
struct RunFiles {
  static constexpr char const* config = "config.cfg";
  static constexpr char const* results = "results.csv";
  static constexpr char const* log = "log.jsonl";
  static constexpr char const* report = "report.html";
};

/// True when a training run has left something in the folder. Other files (a batch log) do not
/// count.
bool is_used(std::filesystem::path const& folder);

/// Keeps a second run out of a run folder for as long as it lives; rank 0 holds one. The system
/// drops the lock when the process ends, however it ends. On a file system without locks it does
/// nothing.
class RunLock {
 public:
  /// Makes the folder. \throws Error (usage)  another process holds the lock: host and process
  explicit RunLock(std::filesystem::path const& folder);
  RunLock(RunLock const&) = delete;
  RunLock& operator=(RunLock const&) = delete;
  ~RunLock();

 private:
  int descriptor_ = -1;
};

/// Removes weights, tables, curves and events of an earlier run; checkpoints are the store's.
void remove_results(std::filesystem::path const& folder);

/// Refuses a used folder unless the settings allow it. Collective: rank 0 looks, all ranks get the
/// answer. \throws Error (usage)  on every rank: names the folder and the three ways out
void check_run_folder(TrainSettings const& settings, comm::Communicator& communicator);

/// The checkpoint that the run goes on from, or nothing for a fresh start. Collective.
/// \throws Error (bad data)  a named checkpoint is damaged, or the folder has only damaged ones
std::optional<checkpoint::LoadedCheckpoint> find_checkpoint(TrainSettings const& settings,
                                                            checkpoint::CheckpointStore& store);

/// Text that rank 0 has, on all ranks.
std::string broadcast_text(std::string const& text, comm::Communicator& communicator);

/// Runs `work` on rank 0 and throws its error on all ranks, so that none waits for a peer that has
/// failed.
template <typename Work>
void on_root(comm::Communicator& communicator, Work const& work) {
  std::string failure;
  int code = 0;
  if (communicator.is_root()) {
    try {
      work();
    } catch (base::Error const& error) {
      failure = error.what();
      code = static_cast<int>(error.code());
    }
  }
  failure = broadcast_text(failure.empty() ? failure : std::to_string(code) + " " + failure,
                           communicator);
  if (failure.empty()) return;
  auto const space = failure.find(' ');
  throw base::Error(failure.substr(space + 1),
                    static_cast<base::ExitCode>(std::stoi(failure.substr(0, space))));
}

}  // namespace yolohpc::train
