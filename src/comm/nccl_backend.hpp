// NcclBackend: the few calls of NCCL and of streams that the NCCL communicator makes, so that its
// logic also runs against a stand-in in host memory.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/comm/device.hpp"

namespace yolohpc::comm {

struct NcclStatus {
  enum class State { done, in_progress, failed };
  State state = State::done;
  std::string text = {};  ///< of a failure: name of the call and the library's own words
};

/// One NCCL communicator and one stream. "Caller's stream" is the current stream of the calling
/// thread.
///
/// Used by two threads: only state(), reached() and abort() may be called by one of them while the
/// other is in none of the calls that return NcclStatus; the user of this class holds a lock around
/// these.
class NcclBackend {
 public:
  using UniqueId = std::array<std::byte, 128>;  // NCCL_UNIQUE_ID_BYTES
  /// A point in the work of a stream.
  using Event = std::shared_ptr<void>;

  virtual ~NcclBackend() = default;

  /// The device in use; `rank` and `host` are left for the caller.
  virtual DeviceIdentity identity() = 0;
  virtual std::string version() = 0;
  /// Whether `tensor` is on the device in use.
  virtual bool reachable(at::Tensor const& tensor) const = 0;
  /// (1) float32 on the device in use, on the caller's stream.
  virtual at::Tensor make_one() = 0;

  /// ncclGetUniqueId
  virtual NcclStatus make_unique_id(UniqueId& id) = 0;
  /// ncclCommInitRankConfig, non-blocking: usually in_progress
  virtual NcclStatus begin_init(UniqueId const& id, int rank, int size) = 0;
  /// ncclCommGetAsyncError
  virtual NcclStatus state() = 0;
  /// Queue a collective on the own stream; in_progress when NCCL needs more time to queue it.
  virtual NcclStatus all_reduce(at::Tensor const& values, ReduceOp op) = 0;
  virtual NcclStatus reduce_scatter(at::Tensor const& part, at::Tensor const& values,
                                    ReduceOp op) = 0;
  virtual NcclStatus all_gather(at::Tensor const& whole, at::Tensor const& part) = 0;
  virtual NcclStatus broadcast(at::Tensor const& values, int root) = 0;
  /// ncclCommFinalize: in_progress while collectives are under way
  virtual NcclStatus begin_finish() = 0;
  /// ncclCommDestroy after begin_finish is done
  virtual NcclStatus destroy() = 0;
  /// ncclCommAbort: kernels under way end, streams go on. Nothing but reached() and stream calls
  /// afterwards.
  virtual NcclStatus abort() = 0;

  /// The own stream goes on after the work that is on the caller's stream.
  virtual void follow_caller() = 0;
  /// The caller's stream goes on after `event`.
  virtual void hold_caller_until(Event const& event) = 0;
  virtual Event record_own_stream() = 0;
  virtual Event record_callers_stream() = 0;
  /// Never blocks.
  virtual bool reached(Event const& event) = 0;
  /// Whether the caller's stream is being captured into a CUDA graph: what is queued then has not
  /// begun.
  virtual bool caller_captures() = 0;
};

/// The one over NCCL and CUDA; in a build with CUDA only.
std::unique_ptr<NcclBackend> make_nccl_backend(int device_index);

}  // namespace yolohpc::comm
