// Recorder: what a run leaves for people and tools to read, written by rank 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "yolohpc/base/log.hpp"
#include "yolohpc/monitor/event_log.hpp"
#include "yolohpc/monitor/progress.hpp"
#include "yolohpc/monitor/report.hpp"
#include "yolohpc/monitor/results_csv.hpp"
#include "yolohpc/monitor/tensorboard.hpp"
#include "yolohpc/train/settings.hpp"
#include "yolohpc/train/train_state.hpp"

namespace yolohpc::train {

/// config.cfg, results.csv, log.jsonl, event files, report.html and the progress line of one run.
/// Exists on every rank; only rank 0 writes.
class Recorder {
 public:
  /// \param resumed  where the run goes on; rows and events after it are cut. nullptr: a fresh run
  /// \throws Error   on rank 0: a file cannot be written
  Recorder(TrainSettings const& settings, RunPosition const* resumed, int rank,
           std::string const& host, base::Log& log);

  void event(std::string const& name, RunPosition const& position,
             monitor::Fields const& fields = {});
  monitor::Progress& progress() { return progress_; }
  /// One epoch is over: a row, scalars, an event, and the report anew.
  void epoch(monitor::EpochRow const& row, RunPosition const& position);
  std::vector<monitor::EpochRow> rows() const;
  /// \param results  final numbers by name
  void report(monitor::TextPairs const& results, std::vector<std::string> const& notes);

 private:
  bool is_root() const { return rank_ == 0; }

  std::filesystem::path folder_;
  int rank_;
  base::Log& log_;
  monitor::TextPairs facts_;
  monitor::TextPairs config_;
  monitor::EventLog events_;
  monitor::Progress progress_;
  std::unique_ptr<monitor::ResultsCsv> results_;
  std::unique_ptr<monitor::TensorBoardWriter> scalars_;
};

}  // namespace yolohpc::train
