// Turns the return code of a CUDA call into an Error with CUDA's own text.
#pragma once

#include <cuda_runtime.h>

namespace yolohpc::comm {

/// \param call  name of the call, such as "cudaEventRecord"
/// \throws Error  communication, unless code is cudaSuccess
void check_cuda(cudaError_t code, char const* call);

}  // namespace yolohpc::comm
