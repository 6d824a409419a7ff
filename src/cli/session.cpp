#include "yolohpc/cli/session.hpp"

#include <algorithm>
#include <span>

#include <ATen/Parallel.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/device.hpp"

namespace yolohpc::cli {
namespace {

using base::ExitCode;
using base::Level;

comm::WorldSettings world_settings(ParsedOptions const& options) {
  comm::WorldSettings settings;
  settings.timeout_s = options.get<double>("comm-timeout");
  settings.lone = options.get<bool>("single-process") ? comm::LoneProcess::on_purpose
                                                      : comm::LoneProcess::refuse_if_launched;
  return settings;
}

at::Device choose(std::string const& wanted, comm::World const& world) {
  int const visible = comm::visible_device_count();
  if (wanted == "cpu" || (wanted == "auto" && visible == 0)) return at::kCPU;
  return {at::kCUDA, static_cast<c10::DeviceIndex>(
                         comm::choose_device(world.local_rank(), world.local_size(), visible))};
}

// MPI's and NCCL's shared-memory transports live in /dev/shm; containers often give it 64 MiB, and
// what does not fit there ends a process with a bus error.
void warn_of_small_shared_memory(comm::World const& world, base::Log& log) {
  constexpr double least_bytes = 1024.0 * 1024 * 1024;
  struct statvfs info {};
  if (world.local_size() == 1 || ::statvfs("/dev/shm", &info) != 0) return;
  double const bytes = static_cast<double>(info.f_blocks) * static_cast<double>(info.f_frsize);
  if (bytes >= least_bytes) return;
  log.root(Level::warning, "/dev/shm has ", static_cast<std::int64_t>(bytes) >> 20, " MiB on host ",
           world.host(),
           "; MPI and NCCL may end with a bus error. Give the container "
           "at least 1 GiB (--shm-size, or bind the host's /dev/shm).");
}

}  // namespace

int usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return ::sched_getaffinity(0, sizeof mask, &mask) == 0 ? std::max(CPU_COUNT(&mask), 1) : 1;
}

Session::Session(int& argc, char**& argv, ParsedOptions const& options)
    : world_(std::make_unique<comm::World>(argc, argv, world_settings(options))) {
  log_ = std::make_unique<base::Log>(
      base::Log::Settings{.rank = world_->rank(), .host = world_->host()});
  for (auto const& warning : options.warnings()) log_->root(Level::warning, warning);
  for (auto const& warning : world_->launch().warnings) log_->root(Level::warning, warning);
  double const timeout_s = options.get<double>("comm-timeout");
  host_ = comm::make_mpi_communicator(*world_, {.timeout_s = timeout_s});
  device_ = choose(options.get<std::string>("device"), *world_);
  auto const backend = options.get<std::string>("comm");
  YOLOHPC_CHECK_AS(
      ExitCode::usage, backend != "nccl" || device_.is_cuda(),
      "--comm nccl moves data between GPUs, but the device is the CPU. Use --comm mpi or "
      "auto, or --device cuda.");
  YOLOHPC_CHECK_AS(
      ExitCode::usage, backend != "mpi" || !device_.is_cuda(),
      "--comm mpi moves host memory, but the device is a GPU. Use --comm nccl or auto.");
  if (device_.is_cuda() && world_->size() > 1) {
    device_comm_ = comm::make_nccl_communicator(
        *world_, *host_, {.device_index = device_.index(), .timeout_s = timeout_s});
  }
  choose_threads(options);
  warn_of_small_shared_memory(*world_, *log_);
}

// Ranks that were bound to cores of their own see only those; ranks that were not share the host's.
void Session::choose_threads(ParsedOptions const& options) {
  cores_ = usable_cores();
  bool const is_bound =
      cores_ * world_->local_size() <= static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  int const share = std::max(is_bound ? cores_ : cores_ / world_->local_size(), 1);
  threads_ = static_cast<int>(options.optional_integer("threads").value_or(share));
  // On a GPU the cores are free for decoding; on CPUs decoding is a small part of a step.
  int const decoders = device_.is_cuda() ? std::max(share - 1, 1) : std::clamp(share / 4, 1, 4);
  workers_ = static_cast<int>(options.optional_integer("workers").value_or(decoders));
  at::set_num_threads(threads_);
  if (device_.is_cuda() && share < workers_ + 1) {
    log_->this_rank(Level::warning, share, " cores for ", workers_,
                    " decode threads and the training thread; ask for more cores per task.");
  }
}

std::string Session::rank_table() {
  auto const row = base::join("rank ", world_->rank(), "  local ", world_->local_rank(), "  host ",
                              world_->host(), "  device ", device_.str(), "  cores ", cores_,
                              "  threads ", threads_, "  workers ", workers_);
  auto const rows = host_->gather_bytes(std::as_bytes(std::span(row.data(), row.size())), 0);
  std::string table;
  for (auto const& bytes : rows) {
    table.append(reinterpret_cast<char const*>(bytes.data()), bytes.size());
    table += '\n';
  }
  if (!table.empty()) table.pop_back();
  return table;
}

}  // namespace yolohpc::cli
