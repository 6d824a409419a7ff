// The devices that CUDA shows.
#include "yolohpc/comm/device.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "cuda_error.hpp"

namespace yolohpc::comm {
namespace {

// As nvidia-smi writes it: 8-4-4-4-12 hexadecimal digits.
std::string uuid_text(cudaUUID_t const& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> digits = {};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += digits.data();
  }
  return text;
}

}  // namespace

int visible_device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

DeviceIdentity device_identity(int index) {
  DeviceIdentity device;
  device.index = index;
  constexpr std::size_t longest_bus_id = 32;
  std::array<char, longest_bus_id> bus_id = {};
  check_cuda(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), index),
             "cudaDeviceGetPCIBusId");
  device.bus_id = bus_id.data();
  cudaDeviceProp properties = {};
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  device.uuid = uuid_text(properties.uuid);
  char const* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  device.visible_devices = visible == nullptr ? "(not set)" : visible;
  return device;
}

}  // namespace yolohpc::comm
