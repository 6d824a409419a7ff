#include "cuda_error.hpp"

#include "yolohpc/base/error.hpp"

namespace yolohpc::comm {

void check_cuda(cudaError_t code, char const* call) {
  YOLOHPC_CHECK_AS(
      base::ExitCode::communication, code == cudaSuccess, call, " returned ",
      static_cast<int>(code), ": ", cudaGetErrorString(code),
      ". The device or its driver is in trouble; `nvidia-smi` on this host shows its state.");
}

}  // namespace yolohpc::comm
