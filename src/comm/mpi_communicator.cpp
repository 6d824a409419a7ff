#include <utility>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"

#include "mpi_group.hpp"
#include "reduction_thread.hpp"
#include "waiting.hpp"

namespace yolohpc::comm {
namespace {

using base::ExitCode;

class MpiPending : public Pending {
 public:
  MpiPending(std::shared_ptr<ReductionJob> job,
             std::shared_ptr<std::atomic<std::int64_t>> waited_ns)
      : job_(std::move(job)), waited_ns_(std::move(waited_ns)) {}

  void wait() override {
    Waiting const waiting(*waited_ns_);
    job_->wait();
  }
  bool done() override { return job_->done(); }

 private:
  std::shared_ptr<ReductionJob> job_;
  std::shared_ptr<std::atomic<std::int64_t>> waited_ns_;
};

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(MpiGroup::Settings const& settings)
      : Communicator(Place{settings.rank, settings.size, settings.host}),
        group_(settings),
        background_(settings) {}

  char const* backend() const override { return "mpi"; }
  void abort() override {
    group_.stop();
    background_.stop();
  }

 private:
  void check_reachable(at::Tensor const& values, char const* collective) const override {
    YOLOHPC_CHECK(
        values.device().is_cpu(), collective, " over MPI got a tensor on ", values.device(),
        ": MPI may only see host memory, whether or not it calls itself CUDA-aware. Copy the "
        "tensor to the CPU first, or use --comm nccl.");
  }
  void do_all_reduce(at::Tensor const& values, ReduceOp op) override {
    group_.all_reduce(values, op);
  }
  std::unique_ptr<Pending> do_all_reduce_async(at::Tensor const& values, ReduceOp op) override {
    return std::make_unique<MpiPending>(background_.submit(values, op), wait_counter());
  }
  void do_reduce_scatter(at::Tensor const& part, at::Tensor const& values, ReduceOp op) override {
    group_.reduce_scatter(part, values, op);
  }
  void do_all_gather(at::Tensor const& whole, at::Tensor const& part) override {
    group_.all_gather(whole, part);
  }
  void do_broadcast(at::Tensor const& values, int root) override { group_.broadcast(values, root); }
  void do_barrier() override { group_.barrier(); }
  std::vector<std::vector<std::byte>> do_gather_bytes(std::span<std::byte const> bytes,
                                                      int root) override {
    return group_.gather_bytes(bytes, root);
  }
  std::vector<std::vector<std::byte>> do_all_gather_bytes(
      std::span<std::byte const> bytes) override {
    return group_.all_gather_bytes(bytes);
  }
  void do_broadcast_bytes(std::vector<std::byte>& bytes, int root) override {
    group_.broadcast_bytes(bytes, root);
  }

  MpiGroup group_;
  ReductionThread background_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(World const& world, MpiSettings settings) {
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.timeout_s > 0, "the communication time-out is ",
                   settings.timeout_s, " s; it must be above 0 (--comm-timeout).");
  YOLOHPC_CHECK_AS(ExitCode::usage,
                   settings.max_message_elements >= 1 &&
                       settings.max_message_elements <= MpiSettings{}.max_message_elements,
                   "max_message_elements is ", settings.max_message_elements,
                   "; it must be 1 .. 2^30.");
  return std::make_unique<MpiCommunicator>(MpiGroup::Settings{
      .rank = world.rank(), .size = world.size(), .host = world.host(), .limits = settings});
}

}  // namespace yolohpc::comm
