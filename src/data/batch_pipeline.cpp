#include "yolohpc/data/batch_pipeline.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"

namespace yolohpc::data {
namespace {

at::Tensor zeros(std::vector<std::int64_t> const& shape, at::ScalarType type) {
  auto tensor = at::empty(shape, at::TensorOptions().dtype(type));
  std::memset(tensor.mutable_data_ptr(), 0, tensor.nbytes());
  return tensor;
}

/// Everything of a batch but the pixels.
Batch assembled(at::Tensor images, std::vector<MadeSample> const& samples) {
  auto const images_count = static_cast<std::int64_t>(samples.size());
  std::size_t most = 0;
  for (auto const& sample : samples) most = std::max(most, sample.boxes.size());
  std::int64_t const rows = padded_box_count(static_cast<std::int64_t>(most));
  Batch batch;
  batch.images = std::move(images);
  batch.boxes = zeros({images_count, rows, 4}, at::kFloat);
  batch.labels = zeros({images_count, rows}, at::kLong);
  batch.valid = zeros({images_count, rows}, at::kBool);
  for (std::int64_t image = 0; image < images_count; ++image) {
    auto const& sample = samples[static_cast<std::size_t>(image)];
    auto* boxes = batch.boxes.mutable_data_ptr<float>() + image * rows * 4;
    auto* label = batch.labels.mutable_data_ptr<std::int64_t>() + image * rows;
    auto* valid = batch.valid.mutable_data_ptr<bool>() + image * rows;
    for (auto const& one : sample.boxes) {
      *boxes++ = (one.box.x1 + one.box.x2) / 2;
      *boxes++ = (one.box.y1 + one.box.y2) / 2;
      *boxes++ = one.box.x2 - one.box.x1;
      *boxes++ = one.box.y2 - one.box.y1;
      *label++ = one.label;
      *valid++ = true;
    }
    batch.image_ids.push_back(sample.image_id);
    batch.samples.push_back(sample.sample);
    batch.geometry.push_back(sample.geometry);
    batch.bad_samples += sample.replaced ? 1 : 0;
  }
  return batch;
}

}  // namespace

at::Tensor TensorPool::take(BatchShape const& shape) {
  // Rectangular validation has a shape for every batch: what is not wanted again must not pile up.
  constexpr std::size_t most_kept = 8;
  std::vector<std::int64_t> const sizes{shape.images, 3, shape.size.height, shape.size.width};
  auto const options = at::TensorOptions().dtype(at::kByte);
  at::Tensor memory;
  {
    std::lock_guard const lock(shelf_->mutex);
    auto const fits = [&](at::Tensor const& tensor) {
      return tensor.sizes() == at::IntArrayRef(sizes);
    };
    auto const place = std::find_if(shelf_->free.begin(), shelf_->free.end(), fits);
    if (place != shelf_->free.end()) {
      memory = *place;
      shelf_->free.erase(place);
    }
  }
  if (!memory.defined()) {
    memory = at::empty(sizes, options.pinned_memory(memory_ == HostMemory::pinned));
  }
  auto const give_back = [shelf = shelf_, memory](void*) {
    std::lock_guard const lock(shelf->mutex);
    shelf->free.push_back(memory);
    if (shelf->free.size() > most_kept) shelf->free.pop_front();
  };
  return at::from_blob(memory.mutable_data_ptr(), sizes, give_back, options);
}

BatchPipeline::BatchPipeline(BatchMaker& maker, Settings const& settings)
    : maker_(maker), settings_(settings), pool_(settings.memory) {
  YOLOHPC_CHECK_AS(base::ExitCode::usage, settings.workers >= 0, "the number of workers is ",
                   settings.workers, " (0 or more are needed).");
  YOLOHPC_CHECK_AS(base::ExitCode::usage, settings.prefetch >= 1, "the loader works ",
                   settings.prefetch, " batches ahead (at least 1 is needed).");
  for (int i = 0; i < settings.workers; ++i) threads_.emplace_back([this] { work(); });
}

BatchPipeline::~BatchPipeline() {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
}

/// Begins one more batch if there is room and one to begin. Needs the lock.
bool BatchPipeline::open_next() {
  if (ended_ || open_.size() >= static_cast<std::size_t>(settings_.prefetch)) return false;
  auto const shape = maker_.shape(next_number_);
  if (!shape) {
    ended_ = true;
    ready_.notify_all();
    return false;
  }
  auto batch = std::make_unique<OpenBatch>();
  batch->number = next_number_++;
  batch->images = pool_.take(*shape);
  batch->samples.resize(static_cast<std::size_t>(shape->images));
  batch->missing = shape->images;
  open_.push_back(std::move(batch));
  return true;
}

/// The next image to make, oldest batch first. Needs the lock.
std::optional<BatchPipeline::Claim> BatchPipeline::claim() {
  do {
    for (auto const& batch : open_) {
      if (batch->claimed < static_cast<std::int64_t>(batch->samples.size())) {
        return Claim{batch.get(), batch->claimed++};
      }
    }
  } while (open_next());
  return std::nullopt;
}

void BatchPipeline::fill(Claim const& claim, WorkerScratch& scratch) {
  auto& batch = *claim.batch;
  MadeSample made;
  std::exception_ptr fault;
  try {
    auto const bytes = batch.images.stride(0);
    auto* const planes = batch.images.mutable_data_ptr<std::uint8_t>() + claim.slot * bytes;
    made = maker_.make(batch.number, claim.slot, planes, scratch);
  } catch (...) {
    fault = std::current_exception();
  }
  std::lock_guard const lock(mutex_);
  batch.samples[static_cast<std::size_t>(claim.slot)] = std::move(made);
  if (fault && !batch.fault) batch.fault = fault;
  if (--batch.missing == 0) ready_.notify_all();
}

void BatchPipeline::work() {
  WorkerScratch scratch;
  std::unique_lock lock(mutex_);
  for (;;) {
    std::optional<Claim> claimed;
    room_.wait(lock, [&] { return stopping_ || (claimed = claim()).has_value(); });
    if (stopping_) return;
    lock.unlock();
    room_.notify_one();  // there may be work for one more
    fill(*claimed, scratch);
    lock.lock();
  }
}

std::optional<Batch> BatchPipeline::next() {
  base::Stopwatch const watch;
  std::unique_lock lock(mutex_);
  if (settings_.workers == 0) {
    if (open_.empty() && !open_next()) return std::nullopt;
    while (open_.front()->missing > 0) {
      auto const claimed = claim();
      lock.unlock();
      fill(*claimed, own_scratch_);
      lock.lock();
    }
  }
  ready_.wait(lock, [&] { return open_.empty() ? ended_ : open_.front()->missing == 0; });
  wait_s_ += watch.elapsed_s();
  if (open_.empty()) return std::nullopt;
  auto const batch = std::move(open_.front());
  open_.pop_front();
  maker_.handed_out(batch->number);
  lock.unlock();
  room_.notify_all();
  if (batch->fault) std::rethrow_exception(batch->fault);
  return assembled(std::move(batch->images), batch->samples);
}

}  // namespace yolohpc::data
