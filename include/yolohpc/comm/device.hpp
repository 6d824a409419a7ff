// Which GPU a rank uses, and whether two ranks took the same one.
#pragma once

#include <string>
#include <vector>

namespace yolohpc::comm {

/// Index of the CUDA device for one rank: 0 when exactly one device is visible (the scheduler gave
/// each task its own, as `--gpus-per-task=1` does), else the local rank.
///
/// One visible device and several ranks on the host is fine here, since each may see another one:
/// what they really hold is checked by check_devices_differ.
///
/// \param local_rank  rank among the processes of this host, 0 .. local_size - 1
/// \param local_size  processes of this host, at least 1
/// \param visible     devices this process sees, 0 or more
/// \throws Error  usage: no device is visible, or more than one but fewer than local_size
int choose_device(int local_rank, int local_size, int visible);

/// The device that a rank holds.
struct DeviceIdentity {
  int rank = 0;
  std::string host = {};
  int index = 0;                     ///< as the process counts them
  std::string bus_id = {};           ///< PCI bus id, such as 0000:3b:00.0
  std::string uuid = {};             ///< "" when the driver tells none
  std::string visible_devices = {};  ///< CUDA_VISIBLE_DEVICES, "(not set)" without
};

/// Refuses two ranks on one physical device. Devices are the same when their UUIDs are (containers
/// of one host may have different host names); without a UUID, when host and PCI bus id are.
/// \throws Error  usage: names both ranks, their hosts, the device and CUDA_VISIBLE_DEVICES, and
/// what to change
void check_devices_differ(std::vector<DeviceIdentity> const& devices);

/// Devices that CUDA shows to this process; 0 in a build without CUDA, without a driver, or without
/// a device.
int visible_device_count();

/// The identity of device `index` of this process; `rank` and `host` are left for the caller.
/// \throws Error  usage: built without CUDA; communication: CUDA refuses, with its own text
DeviceIdentity device_identity(int index);

}  // namespace yolohpc::comm
