// Session: what every command that runs on ranks needs, made from its options.
#pragma once

#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "yolohpc/base/log.hpp"
#include "yolohpc/cli/options.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/comm/world.hpp"

namespace yolohpc::cli {

/// World, communicators, device, threads and log of one command.
class Session {
 public:
  /// Starts MPI, then checks launcher, device and threads. Collective.
  /// \throws Error  usage or communication: see comm::World, comm::choose_device
  Session(int& argc, char**& argv, ParsedOptions const& options);

  comm::World const& world() const { return *world_; }
  /// Host tensors and bytes, over MPI.
  comm::Communicator& host_comm() { return *host_; }
  /// Tensors on device(): NCCL on GPUs, the same as host_comm() on CPUs.
  comm::Communicator& tensor_comm() { return device_comm_ ? *device_comm_ : *host_; }
  base::Log& log() { return *log_; }
  at::Device device() const { return device_; }
  int threads() const { return threads_; }
  int workers() const { return workers_; }
  /// One row per rank: rank, local rank, host, device, cores, threads. On rank 0; elsewhere empty.
  /// Collective.
  std::string rank_table();

 private:
  void choose_threads(ParsedOptions const& options);

  std::unique_ptr<comm::World> world_;
  std::unique_ptr<base::Log> log_;
  std::unique_ptr<comm::Communicator> host_;
  std::unique_ptr<comm::Communicator> device_comm_;
  at::Device device_ = at::kCPU;
  int cores_ = 1;
  int threads_ = 1;
  int workers_ = 1;
};

/// Processors that this process may use (its affinity mask).
int usable_cores();

}  // namespace yolohpc::cli
