#include "yolohpc/train/bench_step.hpp"

#include <algorithm>
#include <array>

#include <ATen/ATen.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/philox.hpp"
#include "yolohpc/train/train_state.hpp"

namespace yolohpc::train {
namespace {

using monitor::Phase;

data::Batch synthetic_batch(BenchStepSettings const& settings, std::int64_t images, int rank) {
  auto const size = settings.train.image_size;
  data::Batch batch;
  base::Philox random(settings.train.seed, 0, static_cast<std::uint64_t>(rank),
                      base::Purpose::test);
  batch.images = at::empty({images, 3, size, size}, at::kByte);
  auto* pixels = batch.images.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < batch.images.numel(); ++i) {
    pixels[i] = static_cast<std::uint8_t>(random.next());
  }
  auto const rows = data::padded_box_count(settings.boxes_per_image);
  batch.boxes = at::zeros({images, rows, 4}, at::kFloat);
  batch.labels = at::zeros({images, rows}, at::kLong);
  batch.valid = at::zeros({images, rows}, at::kBool);
  for (std::int64_t image = 0; image < images; ++image) {
    for (std::int64_t row = 0; row < settings.boxes_per_image; ++row) {
      auto* box = batch.boxes.data_ptr<float>() + (image * rows + row) * 4;
      box[2] = static_cast<float>(random.uniform(0.05, 0.5));
      box[3] = static_cast<float>(random.uniform(0.05, 0.5));
      box[0] = static_cast<float>(random.uniform(box[2] / 2, 1 - box[2] / 2));
      box[1] = static_cast<float>(random.uniform(box[3] / 2, 1 - box[3] / 2));
      batch.labels.data_ptr<std::int64_t>()[image * rows + row] =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(settings.classes)));
      batch.valid.data_ptr<bool>()[image * rows + row] = true;
    }
  }
  return batch;
}

/// Forward, loss and backward, with nothing around them.
class BareStep {
 public:
  BareStep(BenchStepSettings const& settings, std::vector<data::Batch> const& batches)
      : network_(model::load_graph(settings.train.model), model::ClassCount{settings.classes}) {
    auto const device = settings.train.device;
    network_.initialise(settings.train.seed);
    network_.to(device);
    auto format = at::MemoryFormat::Contiguous;
    if (settings.train.channels_last) {
      network_.to_channels_last();
      format = at::MemoryFormat::ChannelsLast;
    }
    for (auto const& batch : batches) {
      images_.push_back(batch.images.to(device).to(at::kFloat).div_(255).contiguous(format));
      targets_.push_back({batch.boxes.to(device), batch.labels.to(device), batch.valid.to(device)});
    }
    for (auto const& parameter : network_.parameters()) {
      if (parameter.trainable) parameters_.push_back(parameter.tensor);
    }
  }

  void step() {
    for (std::size_t i = 0; i < images_.size(); ++i) {
      loss::detection_loss(network_.forward(images_[i]), targets_[i]).total.backward();
    }
    for (auto& parameter : parameters_) parameter.mutable_grad().reset();
  }

 private:
  model::Network network_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> images_;
  std::vector<loss::Targets> targets_;
};

template <typename Step>
double seconds_of(std::int64_t steps, comm::Communicator& communicator, Step const& step) {
  communicator.barrier();
  base::Stopwatch clock;
  for (std::int64_t i = 0; i < steps; ++i) step();
  communicator.barrier();
  return clock.elapsed_s();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  auto const middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

TrainPlan synthetic_plan(BenchStepSettings const& settings, int ranks) {
  // One endless epoch, so that the schedule stays where it is.
  TrainSettings train = settings.train;
  train.epochs = 2;
  train.warmup_epochs = 0;
  if (train.optimizer == "auto") train.optimizer = "sgd";
  train.nominal_batch = 0;
  constexpr std::int64_t endless = 1'000'000;
  return make_plan(train, ranks, endless * train.batch, settings.classes);
}

}  // namespace

BenchStepResult bench_step(BenchStepSettings const& settings, comm::Communicator& communicator) {
  auto const plan = synthetic_plan(settings, communicator.size());
  std::vector<data::Batch> batches;
  for (std::int64_t i = 0; i < plan.batch.micro_batches; ++i) {
    batches.push_back(synthetic_batch(settings, plan.batch.per_micro_batch, communicator.rank()));
  }
  TrainState state(model::load_graph(settings.train.model), settings.classes, settings.train, plan,
                   communicator);
  BareStep bare(settings, batches);
  monitor::PhaseTimers timers;
  auto const full_step = [&] {
    state.step(batches, false, timers);
    timers.count_step(plan.batch.global);
  };
  auto const bare_step = [&] { bare.step(); };
  seconds_of(settings.warmup_steps, communicator, full_step);
  seconds_of(settings.warmup_steps, communicator, bare_step);
  timers.restart();
  BenchStepResult result;
  result.batch = plan.batch.global;
  std::vector<double> ratios;
  double full_s = 0;
  double const images = static_cast<double>(settings.steps * plan.batch.global);
  for (std::int64_t i = 0; i < settings.repeats; ++i) {
    double const full = seconds_of(settings.steps, communicator, full_step);
    double const without = seconds_of(settings.steps, communicator, bare_step);
    full_s += full;
    result.images_per_s.push_back(images / full);
    result.bare_images_per_s.push_back(images / without);
    ratios.push_back(without / full);
  }
  result.median_images_per_s = median(result.images_per_s);
  result.median_bare_images_per_s = median(result.bare_images_per_s);
  result.median_ratio = median(ratios);
  auto const times = timers.total();
  result.forward_share = times[Phase::forward] / full_s;
  result.backward_share = times[Phase::backward] / full_s;
  result.comm_wait_share = times[Phase::comm_wait] / full_s;
  result.optimizer_share = times[Phase::optimizer] / full_s;
  auto memory = at::full({1}, monitor::peak_memory_mib(), at::kDouble).to(settings.train.device);
  communicator.all_reduce_in_place(memory, comm::ReduceOp::max);
  result.peak_memory_mib = memory.item<double>();
  return result;
}

}  // namespace yolohpc::train
