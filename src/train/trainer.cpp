#include "yolohpc/train/trainer.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/checkpoint/store.hpp"
#include "yolohpc/data/loader.hpp"
#include "yolohpc/data/shard_set.hpp"
#include "yolohpc/train/recorder.hpp"
#include "yolohpc/train/run_folder.hpp"
#include "yolohpc/train/saver.hpp"
#include "yolohpc/train/stop.hpp"
#include "yolohpc/train/train_state.hpp"
#include "yolohpc/train/validation.hpp"
#include "yolohpc/train/weights_file.hpp"

namespace yolohpc::train {
namespace {

using base::ExitCode;
using base::Level;
using monitor::Phase;

/// How an epoch's training part ended.
enum class EpochEnd { complete, stopped, step_limit };

}  // namespace

/// Everything one run owns, in order of construction.
class Trainer::Run {
 public:
  Run(TrainSettings settings, TrainComms comms, base::Log& log);
  TrainOutcome run();

 private:
  void load_weights();
  void resume();
  void announce() const;
  EpochEnd train_epoch(data::TrainLoader& loader);
  std::vector<data::Batch> next_batches(data::TrainLoader& loader);
  std::optional<EpochEnd> after_step(StepReport const& report);
  void log_samples(std::vector<data::Batch> const& batches);
  void show_progress();
  void finish_epoch();
  monitor::EpochRow make_row(monitor::PhaseTimes const& times);
  void describe(monitor::EpochRow const& row);
  bool is_due(std::int64_t every) const;
  bool is_patience_spent() const;
  bool should_stop_early() const;
  TrainOutcome stop(EpochEnd end);
  std::string common_stop_reason();
  TrainOutcome finish();
  monitor::TextPairs final_numbers() const;
  std::string result_json(std::string const& status) const;
  double elapsed_s() const { return state_.elapsed_s + clock_.elapsed_s(); }
  data::TrainLoaderSettings loader_settings() const;

  TrainSettings settings_;
  TrainComms comms_;
  base::Log& log_;
  base::Stopwatch clock_;
  StopSignals signals_;
  data::ShardSet train_set_;
  data::ShardSet val_set_;
  std::unique_ptr<data::SampleSource> source_;
  TrainPlan plan_;
  TrainState state_;
  std::unique_ptr<RunLock> lock_;
  Saver saver_;
  std::optional<RunPosition> resumed_;
  std::optional<Recorder> recorder_;
  Validator validator_;
  StopWatch stop_watch_;
  std::string stop_reason_;
  monitor::PhaseTimers timers_;
  double last_validation_s_ = 0;
  std::optional<ValidationResult> last_validation_;
  std::int64_t updates_at_start_ = 0;
  bool is_stop_pending_ = false;
};

namespace {

data::ShardSet open_val_set(TrainSettings const& settings) {
  return {settings.val_data.empty() ? settings.data : settings.val_data, settings.val_split};
}

void check_same_categories(data::ShardSet const& train, data::ShardSet const& val) {
  auto const same = [](data::Category const& a, data::Category const& b) {
    return a.id == b.id && a.name == b.name;
  };
  YOLOHPC_CHECK_AS(ExitCode::bad_data,
                   std::equal(train.categories().begin(), train.categories().end(),
                              val.categories().begin(), val.categories().end(), same),
                   "split ", train.split(), " has ", train.categories().size(),
                   " categories, split ", val.split(), " ", val.categories().size(),
                   ", or their ids or names differ. Pack both with one category list.");
}

std::unique_ptr<RunLock> lock_folder(TrainSettings const& settings,
                                     comm::Communicator& communicator) {
  std::unique_ptr<RunLock> lock;
  on_root(communicator, [&] { lock = std::make_unique<RunLock>(settings.out); });
  return lock;
}

TrainSettings checked(TrainSettings settings, comm::Communicator& communicator) {
  settings.augment.check();
  check_run_folder(settings, communicator);
  return settings;
}

}  // namespace

Trainer::Run::Run(TrainSettings settings, TrainComms comms, base::Log& log)
    : settings_(checked(std::move(settings), comms.host)),
      comms_(comms),
      log_(log),
      train_set_(settings_.data, settings_.train_split),
      val_set_(open_val_set(settings_)),
      source_(data::make_shard_source(train_set_)),
      plan_(make_plan(settings_, comms.host.size(), train_set_.size(),
                      static_cast<std::int64_t>(train_set_.categories().size()))),
      state_(model::load_graph(settings_.model),
             static_cast<std::int64_t>(train_set_.categories().size()), settings_, plan_,
             comms.tensors),
      lock_(lock_folder(settings_, comms.host)),
      saver_(settings_, train_set_, comms.host, log),
      validator_(val_set_, settings_, comms.host),
      stop_watch_({.end_s = settings_.walltime_end_s, .margin_s = settings_.stop_before_s},
                  signals_) {
  check_same_categories(train_set_, val_set_);
  load_weights();
  on_root(comms.host, [&] {
    if (settings_.resume == Resume::start_over) remove_results(settings_.out);
  });
  resume();
  if (!resumed_) saver_.check_space(state_.snapshot_bytes());
  recorder_.emplace(settings_, resumed_ ? &*resumed_ : nullptr, comms.host.rank(),
                    comms.host.host(), log);
  updates_at_start_ = state_.position.updates;
  announce();
}

void Trainer::Run::load_weights() {
  if (settings_.weights.empty()) return;
  auto const weights = read_weights(settings_.weights);
  auto const report = state_.load_weights(weights.tensors);
  log_.root(Level::info, "weights ", settings_.weights.string(), ": ", report.loaded.size(),
            " tensors taken");
  for (auto const& skipped : report.skipped) {
    log_.root(Level::info, "  kept as initialised: ", skipped.name, " (", skipped.reason, ")");
  }
  YOLOHPC_CHECK_AS(ExitCode::bad_data, !report.loaded.empty(), settings_.weights.string(),
                   " has no tensor of this model. Was it made for another architecture?");
}

void Trainer::Run::resume() {
  bool const was_used =
      settings_.resume == Resume::automatic && comms_.host.is_root() && is_used(settings_.out);
  auto const found = saver_.find(settings_);
  if (!found && was_used) {
    log_.root(Level::warning, settings_.out.string(),
              " holds results but no checkpoint: the run starts afresh and replaces them.");
  }
  if (!found) return;
  auto const changes = saver_.check_fits(*found, settings_);
  state_.restore(found->content);
  resumed_ = state_.position;
  auto const& position = state_.position;
  log_.root(Level::info, "resuming from ", found->path.string(), ": epoch ", position.epoch + 1,
            " of ", settings_.epochs, ", iteration ", position.step, " of ", plan_.steps_per_epoch,
            ", update ", position.updates);
  for (auto const& change : changes) {
    log_.root(Level::info, "  changed: --", change.key, " ", change.before, " -> ", change.now);
    if (change.key == "epochs") {
      log_.root(
          Level::warning, "the learning rate now falls over ", change.now,
          " epochs from where the run is; it is not the curve of a run that had them from the "
          "beginning.");
    }
  }
}

void Trainer::Run::announce() const {
  auto const& schedule = plan_.schedule;
  log_.root(Level::info, "data ", settings_.data.string(), ": ", train_set_.size(), " + ",
            val_set_.size(), " images, ", train_set_.categories().size(), " classes; ",
            plan_.steps_per_epoch, " iterations of ", plan_.batch.global, " images (",
            plan_.batch.per_rank, " per rank) in each of ", settings_.epochs, " epochs");
  log_.root(Level::info, optim::to_string(schedule.optimizer), ", lr0 ", schedule.lr0,
            ", weight decay ", state_.schedule().scaled_weight_decay(), ", ",
            state_.schedule().nominal_accumulation(), " iteration(s) per update, warm-up over ",
            state_.schedule().warmup_iterations() * plan_.batch.global, " images");
  for (auto const& note : plan_.notes) log_.root(Level::info, note);
}

data::TrainLoaderSettings Trainer::Run::loader_settings() const {
  data::TrainLoaderSettings loader;
  loader.batch = settings_.batch;
  loader.rank = comms_.host.rank();
  loader.size = comms_.host.size();
  loader.accumulate = static_cast<int>(settings_.accumulate);
  loader.image_size = settings_.image_size;
  loader.seed = settings_.seed;
  loader.augment = settings_.augment;
  loader.combining_epochs =
      settings_.close_mosaic > 0 ? settings_.epochs - settings_.close_mosaic : settings_.epochs;
  loader.on_bad_sample =
      settings_.fail_on_bad_sample ? data::OnBadSample::fail : data::OnBadSample::replace;
  loader.first_epoch = state_.position.epoch;
  loader.first_step = state_.position.step;
  loader.pipeline.workers = settings_.workers;
  return loader;
}

std::vector<data::Batch> Trainer::Run::next_batches(data::TrainLoader& loader) {
  auto const waiting = timers_.measure(Phase::data_wait);
  std::vector<data::Batch> batches;
  for (std::int64_t i = 0; i < settings_.accumulate; ++i) batches.push_back(loader.next());
  return batches;
}

EpochEnd Trainer::Run::train_epoch(data::TrainLoader& loader) {
  state_.network().set_training(true);
  timers_.restart();
  while (state_.position.step < plan_.steps_per_epoch) {
    base::Stopwatch step_clock;
    auto const batches = next_batches(loader);
    if (settings_.log_samples) log_samples(batches);
    stop_reason_ = stop_watch_.reason();
    auto const report = state_.step(batches, !stop_reason_.empty(), timers_);
    timers_.count_step(plan_.batch.global);
    stop_watch_.note_duration(step_clock.elapsed_s());
    for (auto const& bad : loader.take_bad_records()) {
      log_.this_rank(Level::warning, "replaced a bad record: ", bad.reason);
    }
    show_progress();
    if (auto const end = after_step(report)) return *end;
  }
  return EpochEnd::complete;
}

// Stops, limits and saves inside an epoch wait for an optimizer update, so that no accumulated
// gradient has to be carried in a checkpoint.
std::optional<EpochEnd> Trainer::Run::after_step(StepReport const& report) {
  is_stop_pending_ = is_stop_pending_ || report.anyone_stops;
  if (!report.updated) return {};
  if (is_stop_pending_) return EpochEnd::stopped;
  auto const updates = state_.position.updates;
  if (settings_.max_steps > 0 && updates - updates_at_start_ >= settings_.max_steps) {
    return EpochEnd::step_limit;
  }
  if (settings_.save_steps > 0 && updates % settings_.save_steps == 0) {
    state_.elapsed_s += clock_.restart_s();
    saver_.checkpoint(state_, checkpoint::Quality::ordinary);
  }
  return {};
}

void Trainer::Run::log_samples(std::vector<data::Batch> const& batches) {
  std::vector<std::int64_t> mine;
  for (auto const& batch : batches) {
    mine.insert(mine.end(), batch.image_ids.begin(), batch.image_ids.end());
  }
  auto const all = comms_.host.gather_bytes(std::as_bytes(std::span(mine)), 0);
  std::vector<std::int64_t> ids;
  for (auto const& part : all) {
    auto const* first = reinterpret_cast<std::int64_t const*>(part.data());
    ids.insert(ids.end(), first, first + part.size() / sizeof(std::int64_t));
  }
  recorder_->event("samples", state_.position,
                   {{"iteration", state_.iteration()}, {"image_ids", ids}});
}

void Trainer::Run::show_progress() {
  if (!recorder_->progress().is_due() && state_.position.step < plan_.steps_per_epoch) return;
  state_.settle();
  auto const times = timers_.total();
  auto const mean = state_.mean_losses();
  monitor::ProgressState progress{.epoch = state_.position.epoch + 1,
                                  .epochs = settings_.epochs,
                                  .step = state_.position.step,
                                  .steps = plan_.steps_per_epoch,
                                  .losses = {{"box", mean[0]}, {"cls", mean[1]}, {"dfl", mean[2]}},
                                  .images_per_s = times.images_per_s(),
                                  .data_wait = times.share(Phase::data_wait),
                                  .eta_s = 0};
  progress.eta_s =
      monitor::estimate_remaining_s(progress, times.step_ms() / 1000, last_validation_s_);
  recorder_->progress().update(progress);
  auto const interval = timers_.take_interval();
  recorder_->event("progress", state_.position,
                   {{"train/box_loss", mean[0]},
                    {"train/cls_loss", mean[1]},
                    {"train/dfl_loss", mean[2]},
                    {"images_per_s", interval.images_per_s()},
                    {"data_wait", interval.share(Phase::data_wait)},
                    {"comm_wait", interval.share(Phase::comm_wait)},
                    {"memory_mib", monitor::resident_memory_mib()}});
}

bool Trainer::Run::is_due(std::int64_t every) const {
  bool const is_last = state_.position.epoch == settings_.epochs;
  return is_last || (every > 0 && state_.position.epoch % every == 0);
}

void Trainer::Run::finish_epoch() {
  auto const times = timers_.total();
  state_.settle();
  state_.fold_pending_gradients();
  ++state_.position.epoch;
  state_.position.step = 0;
  last_validation_.reset();
  if (is_due(settings_.val_every)) {
    base::Stopwatch validation_clock;
    last_validation_ = validator_.run(state_.ema_network());
    for (auto const& reason : last_validation_->bad_records) {
      log_.this_rank(
          Level::warning,
          "a validation image could not be read and counts as one without detections: ", reason);
    }
    state_.sums.bad_samples += static_cast<std::int64_t>(last_validation_->bad_records.size());
    last_validation_s_ = validation_clock.elapsed_s();
  }
  bool is_best = false;
  if (last_validation_ && last_validation_->is_defined()) {
    double const fitness = last_validation_->fitness();
    // While nothing is found yet, the newest network is as good as any.
    bool const is_better = fitness > state_.best.fitness || state_.best.fitness == 0;
    is_best = is_better || fitness == state_.best.fitness;
    if (is_better) {
      state_.best = {fitness, state_.position.epoch};
    }
  }
  auto const row = make_row(times);
  describe(row);
  state_.sums.reset();
  state_.elapsed_s += clock_.restart_s();
  base::Stopwatch save_clock;
  if (is_best) saver_.best_weights(state_);
  if (is_due(settings_.save_every)) {
    saver_.checkpoint(state_, is_best ? checkpoint::Quality::best : checkpoint::Quality::ordinary);
    saver_.last_weights(state_);
  }
  stop_watch_.note_duration(save_clock.elapsed_s());
  recorder_->epoch(row, state_.position);
}

monitor::EpochRow Trainer::Run::make_row(monitor::PhaseTimes const& times) {
  auto const mean = state_.mean_losses();
  auto const rates = state_.group_rates();
  // One message: what is a maximum over the ranks, and what is a sum.
  auto const worst = comms_.host.all_gather_bytes(std::as_bytes(std::span<double const>(
      std::array{monitor::peak_memory_mib(), times.share(Phase::data_wait),
                 times.share(Phase::comm_wait), static_cast<double>(state_.sums.bad_samples)})));
  monitor::EpochRow row;
  double bad_samples = 0;
  row.peak_memory_mib = 0;
  for (auto const& bytes : worst) {
    auto const* values = reinterpret_cast<double const*>(bytes.data());
    row.peak_memory_mib = std::max(row.peak_memory_mib, values[0]);
    row.data_wait += values[1] / static_cast<double>(worst.size());
    row.comm_wait += values[2] / static_cast<double>(worst.size());
    bad_samples += values[3];
  }
  row.bad_samples = static_cast<std::int64_t>(bad_samples);
  row.epoch = state_.position.epoch;
  row.time_s = elapsed_s();
  row.train_box_loss = mean[0];
  row.train_cls_loss = mean[1];
  row.train_dfl_loss = mean[2];
  row.lr_pg0 = rates[0];
  row.lr_pg1 = rates[1];
  row.lr_pg2 = rates[2];
  row.images_per_s = times.images_per_s();
  row.steps = state_.position.updates;
  row.skipped_steps = state_.sums.skipped_updates;
  fill_validation(last_validation_ ? &*last_validation_ : nullptr, row);
  row.validation_s = last_validation_ ? last_validation_s_ : 0;
  return row;
}

void Trainer::Run::describe(monitor::EpochRow const& row) {
  auto text = base::join("epoch ", row.epoch, "/", settings_.epochs, "  box ", row.train_box_loss,
                         "  cls ", row.train_cls_loss, "  dfl ", row.train_dfl_loss, "  ",
                         static_cast<std::int64_t>(row.images_per_s), " img/s");
  if (last_validation_ && last_validation_->is_defined()) {
    text += base::join("  mAP50 ", row.map50, "  mAP50-95 ", row.map50_95, "  AP ", row.coco_ap,
                       state_.best.epoch == row.epoch ? "  (best)" : "");
  } else if (last_validation_) {
    text += "  mAP undefined: the validation set has no objects";
  }
  recorder_->progress().line(text);
}

bool Trainer::Run::is_patience_spent() const {
  return settings_.patience > 0 && state_.best.epoch > 0 &&
         state_.position.epoch - state_.best.epoch >= settings_.patience;
}

bool Trainer::Run::should_stop_early() const {
  if (!is_patience_spent()) return false;
  log_.root(Level::info, "no better result for ", state_.position.epoch - state_.best.epoch,
            " epochs (best: epoch ", state_.best.epoch, "): stopping, as --patience ",
            settings_.patience, " says.");
  return true;
}

TrainOutcome Trainer::Run::run() {
  recorder_->event(resumed_ ? "resume" : "start", state_.position,
                   {{"images", train_set_.size()},
                    {"digest", train_set_.digest()},
                    {"ranks", static_cast<std::int64_t>(comms_.host.size())}});
  if (state_.position.epoch < settings_.epochs && !is_patience_spent()) {
    data::TrainLoader loader(*source_, loader_settings());
    while (state_.position.epoch < settings_.epochs) {
      auto const end = train_epoch(loader);
      if (end != EpochEnd::complete) return stop(end);
      finish_epoch();
      if (should_stop_early()) break;
    }
  } else {
    log_.root(Level::info, "this run is complete: epoch ", state_.position.epoch, " of ",
              settings_.epochs, ".");
  }
  return finish();
}

TrainOutcome Trainer::Run::stop(EpochEnd end) {
  state_.elapsed_s += clock_.restart_s();
  saver_.checkpoint(state_, checkpoint::Quality::ordinary);
  saver_.last_weights(state_);
  saver_.finish();
  auto const& position = state_.position;
  bool const is_limit = end == EpochEnd::step_limit;
  std::string const reason = is_limit ? "--max-steps is reached" : common_stop_reason();
  recorder_->event("stop", position, {{"reason", reason}});
  log_.root(Level::info, "stopped after update ", position.updates, " (epoch ", position.epoch + 1,
            ", iteration ", position.step, "): ", reason, ". A checkpoint is saved",
            is_limit ? "." : "; the same command with --resume auto goes on.");
  return {.code = is_limit ? ExitCode::done : ExitCode::stopped_early,
          .json = result_json("stopped")};
}

// Any rank may have been the one that was asked; rank 0 tells people.
std::string Trainer::Run::common_stop_reason() {
  auto const all = comms_.host.all_gather_bytes(
      std::as_bytes(std::span(stop_reason_.data(), stop_reason_.size())));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    return base::join(
        std::string(reinterpret_cast<char const*>(all[rank].data()), all[rank].size()), " on rank ",
        rank);
  }
  return "asked to stop";
}

TrainOutcome Trainer::Run::finish() {
  saver_.finish();
  recorder_->event("end", state_.position, {{"best_fitness", state_.best.fitness}});
  recorder_->report(final_numbers(), plan_.notes);
  log_.root(Level::info, "done in ", monitor::duration_text(elapsed_s()), ". ",
            state_.best.epoch > 0 ? base::join("Best mAP50-95 ", state_.best.fitness, " in epoch ",
                                               state_.best.epoch, ". ")
                                  : std::string(),
            "Results are in ", settings_.out.string(), ".");
  return {.code = ExitCode::done, .json = result_json("done")};
}

monitor::TextPairs Trainer::Run::final_numbers() const {
  monitor::TextPairs numbers;
  if (state_.best.epoch > 0) {
    numbers.emplace_back("best mAP50-95", base::join(state_.best.fitness));
    numbers.emplace_back("best epoch", std::to_string(state_.best.epoch));
  }
  if (last_validation_ && last_validation_->is_defined()) {
    auto const& coco = last_validation_->coco.numbers;
    for (std::size_t i = 0; i < coco.size(); ++i) {
      numbers.emplace_back("COCO " + std::string(eval::coco_number_names[i]), base::join(coco[i]));
    }
  }
  return numbers;
}

std::string Trainer::Run::result_json(std::string const& status) const {
  nlohmann::ordered_json const result = {{"status", status},
                                         {"epoch", state_.position.epoch},
                                         {"updates", state_.position.updates},
                                         {"best_fitness", state_.best.fitness},
                                         {"best_epoch", state_.best.epoch},
                                         {"seconds", elapsed_s()},
                                         {"save_held_up_s", saver_.held_up_s()}};
  return result.dump();
}

Trainer::Trainer(TrainSettings settings, TrainComms comms, base::Log& log)
    : run_(std::make_unique<Run>(std::move(settings), comms, log)) {}

Trainer::~Trainer() = default;

TrainOutcome Trainer::run() {
  return run_->run();
}

}  // namespace yolohpc::train
