#include "writer.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/ops/empty_like.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/files.hpp"
#include "yolohpc/checkpoint/format.hpp"

#include "folder.hpp"

namespace yolohpc::checkpoint {
namespace {

std::string kind_of(WriteJob const& job) {
  return job.position ? std::string("checkpoint") : job.path.string();
}

bool fits(base::NamedTensors const& buffers, base::NamedTensors const& tensors) {
  return std::equal(buffers.begin(), buffers.end(), tensors.begin(), tensors.end(),
                    [](auto const& buffer, auto const& tensor) {
                      return buffer.tensor.sizes() == tensor.tensor.sizes() &&
                             buffer.tensor.scalar_type() == tensor.tensor.scalar_type();
                    });
}

base::NamedTensors allocate(base::NamedTensors const& tensors) {
  base::NamedTensors buffers;
  for (auto const& entry : tensors) {
    // The strides of the source are kept: the copy is then one pass over memory, and the background
    // thread does the rest.
    auto const options = entry.tensor.options().device(at::kCPU).requires_grad(false);
    buffers.push_back({entry.name, at::empty_like(entry.tensor, options)});
  }
  return buffers;
}

}  // namespace

CheckpointStore::Writer::~Writer() {
  {
    std::lock_guard const lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

double CheckpointStore::Writer::submit(WriteJob job) {
  base::Stopwatch const watch;
  auto const kind = kind_of(job);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !has_queued(kind); });
  }
  job.content.tensors = snapshot(kind, job.content.tensors);
  {
    std::lock_guard const lock(mutex_);
    queue_.push_back(std::move(job));
  }
  changed_.notify_all();
  return watch.elapsed_s();
}

bool CheckpointStore::Writer::has_queued(std::string const& kind) const {
  return std::any_of(queue_.begin(), queue_.end(),
                     [&](WriteJob const& job) { return kind_of(job) == kind; });
}

base::NamedTensors CheckpointStore::Writer::snapshot(std::string const& kind,
                                                     base::NamedTensors const& tensors) {
  auto& buffers = snapshots_[kind];
  if (!fits(buffers, tensors)) buffers = allocate(tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    buffers[i].name = tensors[i].name;
    buffers[i].tensor.copy_(tensors[i].tensor.detach());
  }
  return buffers;
}

std::vector<SaveOutcome> CheckpointStore::Writer::take_outcomes() {
  std::lock_guard const lock(mutex_);
  return std::exchange(outcomes_, {});
}

void CheckpointStore::Writer::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty(); });
}

std::string CheckpointStore::Writer::last_failures() {
  std::lock_guard const lock(mutex_);
  std::string text;
  for (auto const& [kind, error] : last_error_) {
    if (!error.empty()) text += (text.empty() ? "" : " ") + error;
  }
  return text;
}

void CheckpointStore::Writer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    auto const& job = queue_.front();
    lock.unlock();
    auto outcome = write(job);
    lock.lock();
    last_error_[kind_of(job)] = outcome.error;
    outcomes_.push_back(std::move(outcome));
    queue_.pop_front();
    changed_.notify_all();
  }
}

SaveOutcome CheckpointStore::Writer::write(WriteJob const& job) {
  base::Stopwatch const watch;
  SaveOutcome outcome;
  outcome.path = job.path;
  outcome.is_checkpoint = job.position.has_value();
  try {
    auto const bytes = job.position ? encode(job.content, *job.position, job.quality)
                                    : base::serialize(job.content);
    outcome.size_bytes = static_cast<std::int64_t>(bytes.size());
    base::write_file_atomically(job.path, bytes);
    if (job.position) prune(job.path.parent_path(), keep_);
  } catch (std::exception const& error) {
    outcome.error = error.what();
  }
  outcome.seconds = watch.elapsed_s();
  return outcome;
}

}  // namespace yolohpc::checkpoint
