// A build without CUDA sees no device.
#include "yolohpc/comm/device.hpp"

#include "yolohpc/base/error.hpp"

namespace yolohpc::comm {

int visible_device_count() {
  return 0;
}

DeviceIdentity device_identity(int index) {
  base::fail(
      base::ExitCode::usage, "CUDA device ", index,
      " was asked for, but this yolohpc was built without CUDA. Use --device cpu, or build with "
      "-DYOLOHPC_CUDA=ON.");
}

}  // namespace yolohpc::comm
