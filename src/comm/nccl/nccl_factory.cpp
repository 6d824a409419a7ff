#include <cstdio>

#include "yolohpc/base/error.hpp"

#include "../nccl_communicator.hpp"

namespace yolohpc::comm {

std::unique_ptr<Communicator> make_nccl_communicator(World const& world, Communicator& host,
                                                     NcclSettings settings) {
  int const visible = visible_device_count();
  YOLOHPC_CHECK_AS(
      base::ExitCode::usage, settings.device_index >= 0 && settings.device_index < visible, "rank ",
      world.rank(), " on ", world.host(), " was given CUDA device ", settings.device_index,
      ", but sees ", visible, ". Ask the scheduler for GPUs and check CUDA_VISIBLE_DEVICES.");
  auto const end_job = [](std::string const& text) {
    std::fprintf(stderr, "error: %s\n", text.c_str());
    World::abort(base::ExitCode::communication);
  };
  return make_nccl_communicator_over(make_nccl_backend(settings.device_index), host,
                                     {.timeout_s = settings.timeout_s, .last_resort = end_job});
}

}  // namespace yolohpc::comm
