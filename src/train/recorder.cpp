#include "yolohpc/train/recorder.hpp"

#include <cmath>

#include "yolohpc/base/files.hpp"
#include "yolohpc/train/run_folder.hpp"

namespace yolohpc::train {
namespace {

monitor::EventLog::Settings event_settings(TrainSettings const& settings,
                                           RunPosition const* resumed, int rank) {
  monitor::EventLog::Settings result{
      .file = settings.out / RunFiles::log, .rank = rank, .resumed_step = {}};
  if (resumed != nullptr) result.resumed_step = resumed->updates;
  return result;
}

monitor::Scalars scalars_of(monitor::EpochRow const& row) {
  monitor::Scalars scalars = {{"train/box_loss", row.train_box_loss},
                              {"train/cls_loss", row.train_cls_loss},
                              {"train/dfl_loss", row.train_dfl_loss},
                              {"lr/pg0", row.lr_pg0},
                              {"lr/pg1", row.lr_pg1},
                              {"lr/pg2", row.lr_pg2},
                              {"speed/images_per_s", row.images_per_s},
                              {"speed/data_wait", row.data_wait},
                              {"speed/comm_wait", row.comm_wait}};
  monitor::Scalars const validation = {{"metrics/precision(B)", row.precision},
                                       {"metrics/recall(B)", row.recall},
                                       {"metrics/mAP50(B)", row.map50},
                                       {"metrics/mAP50-95(B)", row.map50_95},
                                       {"val/box_loss", row.val_box_loss},
                                       {"val/cls_loss", row.val_cls_loss},
                                       {"val/dfl_loss", row.val_dfl_loss},
                                       {"coco/AP", row.coco_ap},
                                       {"coco/AP50", row.coco_ap50}};
  for (auto const& scalar : validation) {
    if (std::isfinite(scalar.second)) scalars.push_back(scalar);
  }
  return scalars;
}

}  // namespace

Recorder::Recorder(TrainSettings const& settings, RunPosition const* resumed, int rank,
                   std::string const& host, base::Log& log)
    : folder_(settings.out),
      rank_(rank),
      log_(log),
      facts_{{"model", settings.model},
             {"data", settings.data.string()},
             {"image size", std::to_string(settings.image_size) + " px"},
             {"global batch", std::to_string(settings.batch)},
             {"build", settings.build}},
      config_(settings.config.begin(), settings.config.end()),
      events_(event_settings(settings, resumed, rank)),
      progress_(monitor::Progress::Settings{.is_root = rank == 0}) {
  if (!is_root()) return;
  base::write_file_atomically(folder_ / RunFiles::config, settings.config_text);
  monitor::ResultsCsv::Settings csv{.file = folder_ / RunFiles::results, .resumed_epoch = {}};
  if (resumed != nullptr) csv.resumed_epoch = resumed->epoch;
  results_ = std::make_unique<monitor::ResultsCsv>(csv);
  scalars_ = std::make_unique<monitor::TensorBoardWriter>(monitor::TensorBoardWriter::Settings{
      .folder = folder_, .host = host, .resumed_step = resumed != nullptr ? resumed->updates : -1});
}

void Recorder::event(std::string const& name, RunPosition const& position,
                     monitor::Fields const& fields) {
  events_.write(name, {position.epoch, position.updates}, fields);
}

void Recorder::epoch(monitor::EpochRow const& row, RunPosition const& position) {
  if (!is_root()) return;
  auto const scalars = scalars_of(row);
  event("epoch", position, monitor::Fields(scalars.begin(), scalars.end()));
  // A full disk costs a row, not the run.
  try {
    results_->append(row);
    scalars_->write(position.updates, scalars);
    report({}, {});
  } catch (base::Error const& error) {
    log_.root(base::Level::warning, error.what());
  }
}

std::vector<monitor::EpochRow> Recorder::rows() const {
  return results_ ? results_->rows() : std::vector<monitor::EpochRow>{};
}

void Recorder::report(monitor::TextPairs const& results, std::vector<std::string> const& notes) {
  if (!is_root()) return;
  monitor::write_report(folder_, {.title = folder_.filename().string(),
                                  .facts = facts_,
                                  .rows = rows(),
                                  .results = results,
                                  .config = config_,
                                  .notes = notes});
}

}  // namespace yolohpc::train
