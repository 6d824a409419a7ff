// ReductionThread: does all-reduces in the background, in the order in which they were handed in.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include <ATen/core/Tensor.h>

#include "mpi_group.hpp"

namespace yolohpc::comm {

/// One queued all-reduce.
class ReductionJob {
 public:
  ReductionJob(at::Tensor values, ReduceOp op) : values_(std::move(values)), op_(op) {}
  /// Blocks until the job is over; throws what it threw.
  void wait();
  bool done();

 private:
  friend class ReductionThread;
  void finish(std::exception_ptr failure);

  at::Tensor values_;
  ReduceOp op_;
  std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;
  std::exception_ptr failure_;
};

/// One job at a time, so that the order on the wire is the order of submission. The group is used
/// by this thread alone.
class ReductionThread {
 public:
  explicit ReductionThread(MpiGroup::Settings settings);
  /// Abandons what is not over: a rank that leaves early must not wait for peers.
  ~ReductionThread();
  ReductionThread(ReductionThread const&) = delete;
  ReductionThread& operator=(ReductionThread const&) = delete;

  std::shared_ptr<ReductionJob> submit(at::Tensor values, ReduceOp op);
  /// Makes all jobs fail that are not over. From any thread.
  void stop() { group_.stop(); }

 private:
  void run();

  MpiGroup group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<ReductionJob>> queue_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace yolohpc::comm
