// A stand-in for NCCL: the same calls over MPI and host memory, with faults on demand. Its streams
// are the host's own order of execution, so that holding the caller's stream means to block.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <mpi.h>

#include "../../src/comm/mpi_types.hpp"
#include "../../src/comm/nccl_backend.hpp"
#include "../../src/comm/nccl_communicator.hpp"

namespace yolohpc::testing {

/// What goes wrong, and what was done: shared with the test, which may change it while the stand-in
/// runs.
struct NcclScript {
  std::atomic<int> polls_in_init = 3;     ///< state() says "in progress" that often
  std::string unique_id_failure;          ///< text of a failure
  std::string init_failure;               ///< found by state() during init
  std::string call_failure;               ///< of every collective
  std::atomic<int> stall_from = never;    ///< collectives from this one on are never over
  std::atomic<int> fail_from = never;     ///< once this one is queued, state() fails
  std::atomic<double> call_blocks_s = 0;  ///< every collective holds the caller that long
  std::atomic<bool> callers_stream_stalls = false;
  std::atomic<bool> captures = false;
  bool one_device_for_all = false;

  std::atomic<int> collectives = 0;
  std::atomic<int> aborts = 0;
  std::atomic<int> orderly_ends = 0;

  static constexpr int never = 1 << 30;
};

class StandInNccl : public comm::NcclBackend {
 public:
  StandInNccl(int rank, std::shared_ptr<NcclScript> script)
      : rank_(rank), script_(std::move(script)) {}

  comm::DeviceIdentity identity() override;
  std::string version() override { return "stand-in"; }
  bool reachable(at::Tensor const& tensor) const override { return tensor.device().is_cpu(); }
  at::Tensor make_one() override;

  comm::NcclStatus make_unique_id(UniqueId& id) override;
  comm::NcclStatus begin_init(UniqueId const& id, int rank, int size) override;
  comm::NcclStatus state() override;
  comm::NcclStatus all_reduce(at::Tensor const& values, comm::ReduceOp op) override;
  comm::NcclStatus reduce_scatter(at::Tensor const& part, at::Tensor const& values,
                                  comm::ReduceOp op) override;
  comm::NcclStatus all_gather(at::Tensor const& whole, at::Tensor const& part) override;
  comm::NcclStatus broadcast(at::Tensor const& values, int root) override;
  comm::NcclStatus begin_finish() override;
  comm::NcclStatus destroy() override;
  comm::NcclStatus abort() override;

  void follow_caller() override {}
  void hold_caller_until(Event const& event) override;
  Event record_own_stream() override;
  Event record_callers_stream() override;
  bool reached(Event const& event) override;
  bool caller_captures() override { return script_->captures; }

 private:
  struct Work {
    MPI_Request request = MPI_REQUEST_NULL;
    bool stalls = false;
    at::Tensor sent;  ///< MPI may not read and write the same memory
  };
  bool all_reached();
  /// Starts `post(work)` unless the script says otherwise.
  template <typename Post>
  comm::NcclStatus run(at::Tensor sent, Post const& post);

  int rank_;
  std::shared_ptr<NcclScript> script_;
  std::mutex mutex_;
  MPI_Comm mpi_ = MPI_COMM_NULL;
  MPI_Request init_ = MPI_REQUEST_NULL;
  comm::MpiReductions reductions_;
  std::vector<std::shared_ptr<Work>> work_;
  bool finishing_ = false;
  std::atomic<bool> aborted_ = false;
};

}  // namespace yolohpc::testing
