#include <algorithm>
#include <mutex>
#include <utility>

#include "yolohpc/base/error.hpp"
#include "yolohpc/data/loader.hpp"

namespace yolohpc::data {
namespace {

void check(TrainLoaderSettings const& settings) {
  using base::ExitCode;
  check_batch_divides(settings.batch, settings.size, settings.accumulate);
  settings.augment.check();
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.image_size >= 1, "--imgsz is ", settings.image_size,
                   " pixels (at least 1 is needed).");
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.window >= 1, "the window of mosaic partners is ",
                   settings.window, " steps (at least 1 is needed).");
}

/// A picture by where it stands in the order.
struct PlannedPicture {
  std::int64_t step = 0;
  std::uint32_t sample = 0;
};

}  // namespace

class TrainLoader::Maker final : public BatchMaker {
 public:
  Maker(SampleSource const& source, TrainLoaderSettings const& settings)
      : settings_(settings),
        order_({source.size(), settings.batch, settings.seed}),
        window_(source, {settings.image_size, settings.on_bad_sample}) {
    first_step_ = settings.first_epoch * order_.steps_per_epoch() + settings.first_step;
    bool const combines = settings.augment.mosaic > 0 || settings.augment.mixup > 0;
    std::int64_t const longest =
        std::numeric_limits<std::int64_t>::max() / order_.steps_per_epoch();
    if (!combines) combining_steps_ = 0;
    if (combines && settings.combining_epochs < longest) {
      combining_steps_ = settings.combining_epochs * order_.steps_per_epoch();
    }
  }

  ImageWindow& window() { return window_; }
  SampleOrder const& order() const { return order_; }
  std::int64_t step_of(std::int64_t batch) const {
    return first_step_ + batch / settings_.accumulate;
  }

  std::optional<BatchShape> shape(std::int64_t) override {
    return BatchShape{images_per_batch(), {settings_.image_size, settings_.image_size}};
  }

  MadeSample make(std::int64_t batch, std::int64_t slot, std::uint8_t* planes,
                  WorkerScratch& scratch) override {
    std::int64_t const step = step_of(batch);
    std::int64_t const micro = batch % settings_.accumulate;
    std::int64_t const global_slot =
        (settings_.rank * settings_.accumulate + micro) * images_per_batch() + slot;
    auto const position = order_.position(step);
    SampleKey key;
    key.seed = settings_.seed;
    key.epoch = static_cast<std::uint32_t>(position.epoch);
    key.position = static_cast<std::uint64_t>(position.step * settings_.batch + global_slot);
    auto const draw =
        draw_augmentation(settings_.augment, key, settings_.image_size, settings_.window,
                          step < combining_steps_ ? Combine::yes : Combine::no);
    auto const first = loaded(draw.frame, 0, step, global_slot, scratch.load);
    std::vector<std::shared_ptr<LoadedPicture const>> second;
    if (draw.mixup) {
      second = loaded(draw.mixup->frame, draw.mixup->steps_back, step, global_slot, scratch.load);
    }
    MadeSample made;
    made.boxes = augment(draw, pointers(first), pointers(second), settings_.image_size, planes);
    made.image_id = first.front()->image_id;
    made.sample = first.front()->sample;
    made.replaced = first.front()->replaced;
    return made;
  }

  void handed_out(std::int64_t batch) override {
    std::int64_t const step = step_of(batch + 1);
    window_.forget_before(step);
    std::lock_guard const lock(mutex_);
    order_.forget_before(step - settings_.window);
  }

 private:
  std::int64_t images_per_batch() const {
    return settings_.batch / settings_.size / settings_.accumulate;
  }

  /// The pictures of a frame whose picture 0 was in this slot `steps_back` steps ago.
  std::vector<std::shared_ptr<LoadedPicture const>> loaded(FrameDraw const& draw, int steps_back,
                                                           std::int64_t step, std::int64_t slot,
                                                           LoadScratch& scratch) {
    std::vector<PlannedPicture> plan{{step - steps_back, 0}};
    if (draw.mosaic) {
      for (int const back : draw.mosaic->steps_back) plan.push_back({step - back, 0});
    }
    {
      std::lock_guard const lock(mutex_);
      for (auto& picture : plan) picture.sample = order_.sample_at(picture.step, slot);
    }
    std::vector<std::shared_ptr<LoadedPicture const>> pictures;
    for (auto const& picture : plan) {
      pictures.push_back(window_.get(picture.sample, needed_until(picture.step, step), scratch));
    }
    return pictures;
  }

  /// The last step that may draw what stood in the order at `step`; never before `current`.
  std::int64_t needed_until(std::int64_t step, std::int64_t current) const {
    return std::max(current, std::min(step + settings_.window, combining_steps_ - 1));
  }

  static FramePictures pointers(std::vector<std::shared_ptr<LoadedPicture const>> const& pictures) {
    FramePictures result;
    for (auto const& picture : pictures) result.push_back(picture.get());
    return result;
  }

  TrainLoaderSettings settings_;
  std::mutex mutex_;  ///< guards order_, whose permutations are made on demand
  SampleOrder order_;
  ImageWindow window_;
  std::int64_t first_step_ = 0;
  std::int64_t combining_steps_ = std::numeric_limits<std::int64_t>::max();
};

TrainLoader::TrainLoader(SampleSource const& source, TrainLoaderSettings const& settings)
    : settings_(settings) {
  check(settings);
  maker_ = std::make_unique<Maker>(source, settings);
  pipeline_ = std::make_unique<BatchPipeline>(*maker_, settings.pipeline);
}

TrainLoader::~TrainLoader() = default;

Batch TrainLoader::next() {
  auto batch = pipeline_->next();
  ++returned_;
  batch->geometry.clear();
  return *std::move(batch);
}

std::int64_t TrainLoader::steps_per_epoch() const {
  return maker_->order().steps_per_epoch();
}

SampleOrder::Position TrainLoader::next_position() const {
  return maker_->order().position(maker_->step_of(returned_));
}

std::vector<BadRecord> TrainLoader::take_bad_records() {
  return maker_->window().take_bad_records();
}
double TrainLoader::data_wait_s() const {
  return pipeline_->wait_s();
}
std::int64_t TrainLoader::decoded() const {
  return maker_->window().decoded();
}

}  // namespace yolohpc::data
