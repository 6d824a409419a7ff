// NcclBackend over NCCL and CUDA.
#include "../nccl_backend.hpp"

#include <array>
#include <utility>

#include <ATen/ops/ones.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include "yolohpc/base/error.hpp"

#include "cuda_error.hpp"

namespace yolohpc::comm {
namespace {

static_assert(sizeof(ncclUniqueId) == sizeof(NcclBackend::UniqueId));

ncclDataType_t nccl_type(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return ncclFloat64;
    case at::kFloat:
      return ncclFloat32;
    case at::kHalf:
      return ncclFloat16;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kLong:
      return ncclInt64;
    case at::kInt:
      return ncclInt32;
    case at::kByte:
      return ncclUint8;
    default:
      base::fail(base::ExitCode::failure, "no NCCL type for tensors of ", type, ".");
  }
}

ncclRedOp_t nccl_op(ReduceOp op) {
  return std::array{ncclSum, ncclMax, ncclMin}[static_cast<std::size_t>(op)];
}

class CudaEvent {
 public:
  explicit CudaEvent(cudaStream_t stream) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming),
               "cudaEventCreateWithFlags");
    check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  ~CudaEvent() { static_cast<void>(cudaEventDestroy(event_)); }
  CudaEvent(CudaEvent const&) = delete;
  CudaEvent& operator=(CudaEvent const&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

cudaEvent_t raw(NcclBackend::Event const& event) {
  return static_cast<CudaEvent const*>(event.get())->get();
}

// While one thread captures a graph, CUDA forbids queries of events to all threads that do not opt
// out.
class RelaxedCapture {
 public:
  RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCapture(RelaxedCapture const&) = delete;
  RelaxedCapture& operator=(RelaxedCapture const&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeThreadLocal;
};

class CudaNcclBackend : public NcclBackend {
 public:
  explicit CudaNcclBackend(int device_index)
      : device_(static_cast<c10::DeviceIndex>(device_index)),
        // High priority: a reduction that is ready should not queue behind kernels of the backward
        // pass.
        own_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_)) {}
  ~CudaNcclBackend() override {
    if (nccl_ != nullptr) ncclCommAbort(nccl_);
  }

  DeviceIdentity identity() override { return device_identity(device_); }

  std::string version() override {
    int code = 0;
    ncclGetVersion(&code);
    constexpr int major_step = 10000;
    constexpr int minor_step = 100;
    return base::join(code / major_step, '.', code % major_step / minor_step, '.',
                      code % minor_step);
  }

  bool reachable(at::Tensor const& tensor) const override {
    return tensor.device().is_cuda() && tensor.device().index() == device_;
  }

  at::Tensor make_one() override {
    return at::ones({1}, at::TensorOptions().device(at::kCUDA, device_).dtype(at::kFloat));
  }

  NcclStatus make_unique_id(UniqueId& id) override {
    return status(ncclGetUniqueId(reinterpret_cast<ncclUniqueId*>(id.data())), "ncclGetUniqueId");
  }

  NcclStatus begin_init(UniqueId const& id, int rank, int size) override {
    c10::cuda::CUDAGuard const guard(device_);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return status(
        ncclCommInitRankConfig(&nccl_, size, *reinterpret_cast<ncclUniqueId const*>(id.data()),
                               rank, &config),
        "ncclCommInitRankConfig");
  }

  NcclStatus state() override {
    ncclResult_t result = ncclSuccess;
    auto const asked = ncclCommGetAsyncError(nccl_, &result);
    if (asked != ncclSuccess) return status(asked, "ncclCommGetAsyncError");
    return status(result, "NCCL in the background");
  }

  NcclStatus all_reduce(at::Tensor const& values, ReduceOp op) override {
    c10::cuda::CUDAGuard const guard(device_);
    return status(ncclAllReduce(values.data_ptr(), values.data_ptr(), count(values), type(values),
                                nccl_op(op), nccl_, own_stream_.stream()),
                  "ncclAllReduce");
  }

  NcclStatus reduce_scatter(at::Tensor const& part, at::Tensor const& values,
                            ReduceOp op) override {
    c10::cuda::CUDAGuard const guard(device_);
    return status(ncclReduceScatter(values.data_ptr(), part.data_ptr(), count(part), type(values),
                                    nccl_op(op), nccl_, own_stream_.stream()),
                  "ncclReduceScatter");
  }

  NcclStatus all_gather(at::Tensor const& whole, at::Tensor const& part) override {
    c10::cuda::CUDAGuard const guard(device_);
    return status(ncclAllGather(part.data_ptr(), whole.data_ptr(), count(part), type(whole), nccl_,
                                own_stream_.stream()),
                  "ncclAllGather");
  }

  NcclStatus broadcast(at::Tensor const& values, int root) override {
    c10::cuda::CUDAGuard const guard(device_);
    return status(ncclBroadcast(values.data_ptr(), values.data_ptr(), count(values), type(values),
                                root, nccl_, own_stream_.stream()),
                  "ncclBroadcast");
  }

  NcclStatus begin_finish() override { return status(ncclCommFinalize(nccl_), "ncclCommFinalize"); }

  NcclStatus destroy() override {
    return status(ncclCommDestroy(std::exchange(nccl_, nullptr)), "ncclCommDestroy");
  }

  NcclStatus abort() override {
    if (nccl_ == nullptr) return {};
    c10::cuda::CUDAGuard const guard(device_);
    RelaxedCapture const relaxed;
    return status(ncclCommAbort(std::exchange(nccl_, nullptr)), "ncclCommAbort");
  }

  void follow_caller() override {
    CudaEvent const reached_by_caller(callers_stream());
    check_cuda(cudaStreamWaitEvent(own_stream_.stream(), reached_by_caller.get(), 0),
               "cudaStreamWaitEvent");
  }

  void hold_caller_until(Event const& event) override {
    c10::cuda::CUDAGuard const guard(device_);
    check_cuda(cudaStreamWaitEvent(callers_stream(), raw(event), 0), "cudaStreamWaitEvent");
  }

  Event record_own_stream() override {
    c10::cuda::CUDAGuard const guard(device_);
    return std::make_shared<CudaEvent>(own_stream_.stream());
  }

  Event record_callers_stream() override {
    c10::cuda::CUDAGuard const guard(device_);
    return std::make_shared<CudaEvent>(callers_stream());
  }

  bool reached(Event const& event) override {
    c10::cuda::CUDAGuard const guard(device_);
    RelaxedCapture const relaxed;
    auto const code = cudaEventQuery(raw(event));
    if (code == cudaErrorNotReady) return false;
    check_cuda(code, "cudaEventQuery");
    return true;
  }

  bool caller_captures() override {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(callers_stream(), &capture), "cudaStreamIsCapturing");
    return capture != cudaStreamCaptureStatusNone;
  }

 private:
  static std::size_t count(at::Tensor const& tensor) {
    return static_cast<std::size_t>(tensor.numel());
  }
  static ncclDataType_t type(at::Tensor const& tensor) { return nccl_type(tensor.scalar_type()); }

  cudaStream_t callers_stream() const { return c10::cuda::getCurrentCUDAStream(device_).stream(); }

  NcclStatus status(ncclResult_t result, char const* call) const {
    if (result == ncclSuccess) return {NcclStatus::State::done};
    if (result == ncclInProgress) return {NcclStatus::State::in_progress};
    return {NcclStatus::State::failed,
            base::join(call, " returned ", static_cast<int>(result), ": ",
                       ncclGetErrorString(result), " (", ncclGetLastError(nccl_), ")")};
  }

  c10::DeviceIndex device_;
  c10::cuda::CUDAStream own_stream_;
  ncclComm_t nccl_ = nullptr;
};

}  // namespace

std::unique_ptr<NcclBackend> make_nccl_backend(int device_index) {
  return std::make_unique<CudaNcclBackend>(device_index);
}

}  // namespace yolohpc::comm
