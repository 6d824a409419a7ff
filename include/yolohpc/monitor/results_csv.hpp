// results.csv: one header and one row per epoch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace yolohpc::monitor {

/// What one epoch is remembered by. A value that does not exist (no validation in this epoch, no
/// object in the validation set) is NaN and becomes an empty field.
struct EpochRow {
  std::int64_t epoch = 0;  ///< from 1
  double time_s = 0;       ///< since the run began, over all its parts
  double train_box_loss = 0;
  double train_cls_loss = 0;
  double train_dfl_loss = 0;
  double precision = 0;
  double recall = 0;
  double map50 = 0;     ///< internal metric, spec/postprocess.md section 5
  double map50_95 = 0;  ///< internal metric
  double val_box_loss = 0;
  double val_cls_loss = 0;
  double val_dfl_loss = 0;
  double lr_pg0 = 0;  ///< learning rate of parameter group 0 at the end of the epoch
  double lr_pg1 = 0;
  double lr_pg2 = 0;
  double coco_ap = 0;  ///< AP 0.50:0.95 of the COCO evaluation
  double coco_ap50 = 0;
  double coco_ap75 = 0;
  double images_per_s = 0;  ///< all ranks together, training part
  double data_wait = 0;     ///< share of the training time spent waiting for batches, 0 to 1
  double comm_wait = 0;     ///< share of the training time spent waiting for other ranks, 0 to 1
  double validation_s = 0;
  std::int64_t steps = 0;          ///< optimiser updates since the run began
  std::int64_t skipped_steps = 0;  ///< in this epoch, for values that were not finite
  std::int64_t bad_samples = 0;    ///< in this epoch, replaced images of all ranks
  double peak_memory_mib = 0;      ///< largest resident set of any rank
};

/// The header line, without the line end: the contract's columns first, then yolohpc's own.
std::string results_header();
/// One row: numbers to six significant digits, times to three decimals.
std::string results_row(EpochRow const& row);
/// Parses a row. Empty when the line is torn or not a row.
std::optional<EpochRow> parse_results_row(std::string const& line);

/// Appends rows to results.csv. Used by rank 0 only.
class ResultsCsv {
 public:
  struct Settings {
    std::filesystem::path file = {};
    /// On resume: rows of later epochs are cut. Empty: the file begins anew with its header.
    std::optional<std::int64_t> resumed_epoch = {};
  };
  /// \throws Error (bad data)  the file has another header: it was not written by this version
  /// \throws Error             it cannot be written
  explicit ResultsCsv(Settings settings);

  /// Appends and syncs one row. \throws Error  it cannot be written, or the epoch does not follow
  /// the last one
  void append(EpochRow const& row);

  /// All rows in the file, those from before a resume first.
  std::vector<EpochRow> const& rows() const { return rows_; }

 private:
  Settings settings_;
  std::vector<EpochRow> rows_;
};

}  // namespace yolohpc::monitor
