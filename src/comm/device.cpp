#include "yolohpc/comm/device.hpp"

#include <map>
#include <utility>

#include "yolohpc/base/error.hpp"

namespace yolohpc::comm {
namespace {

using base::ExitCode;

std::pair<std::string, std::string> physical_key(DeviceIdentity const& device) {
  if (!device.uuid.empty()) return {"", device.uuid};
  return {device.host, device.bus_id};
}

std::string describe(DeviceIdentity const& device) {
  return base::join("rank ", device.rank, " on ", device.host, " (its device ", device.index,
                    ", CUDA_VISIBLE_DEVICES=", device.visible_devices, ")");
}

}  // namespace

int choose_device(int local_rank, int local_size, int visible) {
  YOLOHPC_CHECK_AS(ExitCode::usage, visible > 0, "no CUDA device is visible to local rank ",
                   local_rank,
                   " (CUDA shows 0). Ask the scheduler for GPUs, give the container `--nv`, check "
                   "CUDA_VISIBLE_DEVICES, or train with --device cpu.");
  if (visible == 1) return 0;
  YOLOHPC_CHECK_AS(ExitCode::usage, visible >= local_size, "this host runs ", local_size,
                   " ranks, but local rank ", local_rank, " sees ", visible,
                   " CUDA devices. Start at most ", visible,
                   " ranks per host, or let the scheduler give each task its own device "
                   "(--gpus-per-task=1).");
  return local_rank;
}

void check_devices_differ(std::vector<DeviceIdentity> const& devices) {
  std::map<std::pair<std::string, std::string>, DeviceIdentity const*> taken;
  for (auto const& device : devices) {
    auto const [place, is_new] = taken.emplace(physical_key(device), &device);
    YOLOHPC_CHECK_AS(ExitCode::usage, is_new, describe(*place->second), " and ", describe(device),
                     " hold the same GPU ", device.bus_id, device.uuid.empty() ? "" : " ",
                     device.uuid,
                     ". Start no more ranks per host than it has GPUs, and either leave "
                     "CUDA_VISIBLE_DEVICES alone or give each task its own device "
                     "(--gpus-per-task=1).");
  }
}

}  // namespace yolohpc::comm
