#include "reduction_thread.hpp"

#include <utility>

namespace yolohpc::comm {

void ReductionJob::wait() {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return done_; });
  if (failure_) std::rethrow_exception(failure_);
}

bool ReductionJob::done() {
  std::lock_guard const lock(mutex_);
  return done_;
}

void ReductionJob::finish(std::exception_ptr failure) {
  {
    std::lock_guard const lock(mutex_);
    done_ = true;
    failure_ = std::move(failure);
  }
  finished_.notify_all();
}

ReductionThread::ReductionThread(MpiGroup::Settings settings)
    : group_(std::move(settings)), thread_([this] { run(); }) {}

ReductionThread::~ReductionThread() {
  stop();
  {
    std::lock_guard const lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<ReductionJob> ReductionThread::submit(at::Tensor values, ReduceOp op) {
  auto job = std::make_shared<ReductionJob>(std::move(values), op);
  {
    std::lock_guard const lock(mutex_);
    queue_.push_back(job);
  }
  changed_.notify_all();
  return job;
}

void ReductionThread::run() {
  for (;;) {
    std::shared_ptr<ReductionJob> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    std::exception_ptr failure;
    try {
      group_.all_reduce(job->values_, job->op_);
    } catch (...) {
      failure = std::current_exception();
    }
    job->finish(std::move(failure));
  }
}

}  // namespace yolohpc::comm
