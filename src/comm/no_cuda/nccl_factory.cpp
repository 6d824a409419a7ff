// A build without CUDA has no NCCL.
#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::comm {

std::unique_ptr<Communicator> make_nccl_communicator(World const&, Communicator&,
                                                     NcclSettings settings) {
  base::fail(
      base::ExitCode::usage, "NCCL was asked for (CUDA device ", settings.device_index,
      "), but this yolohpc was built without CUDA. Use --comm mpi --device cpu, or build with "
      "-DYOLOHPC_CUDA=ON.");
}

}  // namespace yolohpc::comm
