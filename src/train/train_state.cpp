#include "yolohpc/train/train_state.hpp"

#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/loss/criterion.hpp"
#include "yolohpc/optim/clip.hpp"
#include "yolohpc/parallel/optimizer_views.hpp"
#include "yolohpc/train/weights_file.hpp"

namespace yolohpc::train {
namespace {

using base::ExitCode;
using monitor::Phase;

// Global L2 norm that gradients are clipped to. Source: spec/optim.md, section 6.
constexpr double max_gradient_norm = 10.0;
// Skipped updates in a row after which the run has diverged: a scale that is backed off ten times
// has fallen by a factor of 1,000.
constexpr std::int64_t max_skipped_in_a_row = 10;

std::string const weights_prefix = "weights.";
std::string const gradient_prefix = "gradient.";

optim::GroupAssignment assign_groups(std::vector<model::Parameter> const& parameters,
                                     optim::OptimizerKind kind) {
  std::vector<optim::ParameterTraits> traits;
  for (auto const& parameter : parameters) {
    traits.push_back({parameter.name, parameter.tensor.dim(), parameter.is_norm});
  }
  return optim::group_parameters(traits, kind);
}

std::vector<parallel::FlatParameter> trainable(std::vector<model::Parameter> const& parameters,
                                               std::vector<int> const& group_of) {
  std::vector<parallel::FlatParameter> flat;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].trainable) continue;
    flat.push_back(
        {parameters[i].name, parameters[i].tensor, group_of[i], static_cast<std::int64_t>(i)});
  }
  return flat;
}

base::NamedTensors with_prefix(base::NamedTensors tensors, std::string const& prefix) {
  for (auto& entry : tensors) entry.name = prefix + entry.name;
  return tensors;
}

void append(base::NamedTensors& to, base::NamedTensors more) {
  for (auto& entry : more) to.push_back(std::move(entry));
}

loss::Targets targets_on(at::Device device, data::Batch const& batch) {
  return {batch.boxes.to(device, /*non_blocking=*/true), batch.labels.to(device, true),
          batch.valid.to(device, true)};
}

}  // namespace

TrainState::~TrainState() = default;

TrainState::TrainState(model::GraphSpec const& graph, std::int64_t classes,
                       TrainSettings const& settings, TrainPlan const& plan,
                       comm::Communicator& communicator)
    : communicator_(communicator),
      channels_last_(settings.channels_last),
      device_(settings.device),
      schedule_(plan.schedule),
      network_(graph, model::ClassCount{classes}),
      ema_network_(graph, model::ClassCount{classes}) {
  loss_settings_.gains = settings.gains;
  network_.initialise(settings.seed);
  network_.check_input({plan.batch.per_micro_batch, settings.image_size, settings.image_size});
  network_.to(device_);
  ema_network_.to(device_);
  auto const parameters = network_.parameters();
  auto assignment = assign_groups(parameters, plan.schedule.optimizer);
  groups_ = std::move(assignment.groups);
  flat_ = std::make_unique<parallel::FlatBuffers>(
      trainable(parameters, assignment.group_of),
      parallel::FlatSettings{.bucket_bytes = settings.bucket_bytes,
                             .layout = channels_last_ ? parallel::WeightLayout::channels_last
                                                      : parallel::WeightLayout::row_major});
  exchange_ = std::make_unique<StepExchange>(network_.buffers(), communicator);
  optimizer_ = optim::make_optimizer(plan.schedule.optimizer, parallel::make_segments(*flat_),
                                     parallel::make_kernels(*flat_, groups_));
  ema_ = std::make_unique<optim::Ema>(
      optim::EmaSettings{.decay = settings.ema_decay},
      std::vector<at::Tensor>{flat_->parameters(), exchange_->statistics()});
  reducer_ = std::make_unique<parallel::Reducer>(
      *flat_, communicator, parallel::ReducerSettings{.overlap = settings.overlap});
  adopt_averages();
  sums.items = at::zeros({3}, at::kDouble);
}

// The averaged network computes with the averages themselves: its tensors become views into them,
// laid out as those of the live network.
void TrainState::adopt_averages() {
  ema_network_.load_state(network_.state(), model::LoadMode::strict);
  ema_network_.set_training(false);
  auto const averages = ema_->averages();
  auto const views = flat_->export_flat(averages[0]);
  auto const live = network_.state();
  auto const averaged = ema_network_.state();
  std::int64_t at = 0;
  for (std::size_t i = 0; i < live.size(); ++i) {
    auto target = averaged[i].tensor;
    if (auto const view = base::find_tensor(views, live[i].name); view.defined()) {
      target.requires_grad_(false);
      target.set_data(view);
    } else if (model::StateKind const kind = network_.entries()[i].kind;
               kind == model::StateKind::running_mean || kind == model::StateKind::running_var) {
      target.set_data(averages[1].narrow(0, at, target.numel()).view(target.sizes()));
      at += target.numel();
    }
  }
}

std::int64_t TrainState::iteration() const {
  return position.epoch * schedule_.settings().iterations_per_epoch + position.step;
}

std::array<double, 3> TrainState::mean_losses() const {
  double const count = static_cast<double>(sums.iterations);
  auto const* items = sums.items.data_ptr<double>();
  return {items[0] / count, items[1] / count, items[2] / count};
}

std::array<double, 3> TrainState::group_rates() const {
  using optim::GroupKind;
  auto const last = std::max<std::int64_t>(iteration() - 1, 0);
  auto const kernels = schedule_.settings().optimizer == optim::OptimizerKind::musgd
                           ? GroupKind::muon
                           : GroupKind::weight;
  return {schedule_.learning_rate(last, kernels), schedule_.learning_rate(last, GroupKind::norm),
          schedule_.learning_rate(last, GroupKind::bias)};
}

void EpochSums::reset() {
  items.zero_();
  iterations = 0;
  skipped_updates = 0;
  bad_samples = 0;
}

model::LoadReport TrainState::load_weights(base::NamedTensors const& weights) {
  auto report = network_.load_state(weights, model::LoadMode::matching);
  exchange_->accept_statistics();
  ema_network_.load_state(network_.state(), model::LoadMode::strict);
  return report;
}

StepReport TrainState::step(std::span<data::Batch const> micro_batches, bool wants_to_stop,
                            monitor::PhaseTimers& timers) {
  settle();
  auto const now = iteration();
  bool const updates = step_rule_.advance(now, schedule_.accumulation(now));
  forward_backward(micro_batches, updates, wants_to_stop, timers);
  ++iterations_since_update_;
  if (updates) update(timers);
  {
    auto const waiting = timers.measure(Phase::comm_wait);
    exchange_->finish();
  }
  if (updates) ema_->update();
  unread_items_ = exchange_->mean_items();
  for (auto const& batch : micro_batches) sums.bad_samples += batch.bad_samples;
  ++position.step;
  return {.updated = updates, .anyone_stops = exchange_->anyone_stops()};
}

void TrainState::forward_backward(std::span<data::Batch const> micro_batches, bool reduces,
                                  bool wants_to_stop, monitor::PhaseTimers& timers) {
  auto const format =
      channels_last_ ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  at::Tensor items;
  for (auto const& batch : micro_batches) {
    bool const is_last = &batch == &micro_batches.back();
    reducer_->begin_micro_batch(is_last && reduces ? parallel::MicroBatch::last
                                                   : parallel::MicroBatch::more_follow);
    loss::Loss loss;
    {
      auto const forward = timers.measure(Phase::forward);
      auto const images =
          batch.images.to(device_, true).to(at::kFloat).div_(255).contiguous(format);
      loss = loss::detection_loss(network_.forward(images), targets_on(device_, batch),
                                  loss_settings_);
      items = items.defined() ? items + loss.items : loss.items;
    }
    if (is_last) {
      exchange_->begin({items / static_cast<double>(micro_batches.size()), wants_to_stop});
    }
    auto const backward = timers.measure(Phase::backward);
    loss.total.backward();
  }
}

void TrainState::update(monitor::PhaseTimers& timers) {
  {
    auto const waiting = timers.measure(Phase::comm_wait);
    reducer_->finish();
  }
  auto const optimizing = timers.measure(Phase::optimizer);
  at::NoGradGuard const no_grad;
  optim::GradientClipper const clipper({flat_->gradients()}, max_gradient_norm);
  auto const clipped = clipper.clip_in_place(clipper.square_sum());
  optimizer_->step(schedule_.hyper(iteration(), groups_), clipped.found_inf);
  flat_->zero_grad();
  unread_found_inf_ = clipped.found_inf;
  iterations_since_update_ = 0;
  ++position.updates;
}

void TrainState::settle() {
  if (unread_items_.defined()) {
    auto const items = unread_items_.to(at::kCPU, at::kDouble);
    // One bad batch must not hide the losses of a whole epoch.
    if (at::isfinite(items).all().item<bool>()) {
      sums.items.add_(items);
      ++sums.iterations;
    }
    unread_items_.reset();
  }
  if (!unread_found_inf_.defined()) return;
  bool const skipped = unread_found_inf_.item<float>() != 0;
  unread_found_inf_.reset();
  skipped_in_a_row_ = skipped ? skipped_in_a_row_ + 1 : 0;
  sums.skipped_updates += skipped ? 1 : 0;
  YOLOHPC_CHECK_AS(ExitCode::diverged, skipped_in_a_row_ < max_skipped_in_a_row,
                   "training has diverged: the gradients of the last ", skipped_in_a_row_,
                   " updates were not finite (epoch ", position.epoch + 1, ", update ",
                   position.updates,
                   "). Lower --lr0 or lengthen --warmup-epochs and start again; the "
                   "newest checkpoints may hold weights that were already too large.");
}

void TrainState::fold_pending_gradients() {
  if (!has_pending_gradients() || communicator_.size() == 1) return;
  communicator_.all_reduce_in_place(flat_->gradients(), comm::ReduceOp::sum);
  // One rank carries the sum, so that the reduction to come counts it once.
  if (!communicator_.is_root()) flat_->zero_grad();
}

base::NamedTensors TrainState::averaged_weights() const {
  return ema_network_.state();
}

base::Safetensors TrainState::snapshot() const {
  base::Safetensors content;
  append(content.tensors, with_prefix(network_.state(), weights_prefix));
  append(content.tensors, with_prefix(ema_network_.state(), averaged_prefix));
  append(content.tensors, parallel::export_optimizer(*flat_, *optimizer_));
  if (has_pending_gradients()) {
    append(content.tensors, with_prefix(flat_->export_flat(flat_->gradients()), gradient_prefix));
  }
  content.tensors.push_back({"run.loss_items", sums.items});
  nlohmann::json const run = {{"epoch", position.epoch},
                              {"step", position.step},
                              {"updates", position.updates},
                              {"last_update_iteration", step_rule_.last()},
                              {"iterations_since_update", iterations_since_update_},
                              {"skipped_in_a_row", skipped_in_a_row_},
                              {"ema_updates", ema_->updates()},
                              {"sum_iterations", sums.iterations},
                              {"sum_skipped", sums.skipped_updates},
                              {"best_fitness", best.fitness},
                              {"best_epoch", best.epoch},
                              {"elapsed_s", elapsed_s}};
  content.metadata["run"] = run.dump();
  return content;
}

void TrainState::restore(base::Safetensors const& content) {
  auto const& tensors = content.tensors;
  network_.load_state(tensors_under(tensors, weights_prefix), model::LoadMode::strict);
  exchange_->accept_statistics();
  ema_network_.load_state(tensors_under(tensors, averaged_prefix), model::LoadMode::strict);
  parallel::import_optimizer(*flat_, tensors, *optimizer_);
  flat_->zero_grad();
  auto const run = nlohmann::json::parse(content.metadata.at("run"));
  iterations_since_update_ = run.at("iterations_since_update");
  if (has_pending_gradients() && communicator_.is_root()) {
    flat_->import_flat(tensors_under(tensors, gradient_prefix), flat_->gradients());
  }
  sums.items.copy_(base::find_tensor(tensors, "run.loss_items"));
  sums.iterations = run.at("sum_iterations");
  sums.skipped_updates = run.at("sum_skipped");
  skipped_in_a_row_ = run.at("skipped_in_a_row");
  position = {run.at("epoch"), run.at("step"), run.at("updates")};
  best = {run.at("best_fitness"), run.at("best_epoch")};
  elapsed_s = run.at("elapsed_s");
  ema_->set_updates(run.at("ema_updates"));
  step_rule_.load_state(
      {{"last",
        at::scalar_tensor(run.at("last_update_iteration").get<std::int64_t>(), at::kLong)}});
}

std::int64_t TrainState::snapshot_bytes() const {
  std::int64_t bytes = 0;
  for (auto const& entry : snapshot().tensors) {
    bytes += entry.tensor.numel() * static_cast<std::int64_t>(entry.tensor.element_size());
  }
  return bytes;
}

}  // namespace yolohpc::train
