// MpiGroup: an MPI communicator of its own whose collectives end by a deadline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include "yolohpc/comm/communicator.hpp"

#include "mpi_types.hpp"

namespace yolohpc::comm {

/// A duplicate of MPI_COMM_WORLD. Each collective is a nonblocking MPI call that is polled until it
/// is over, until the deadline, or until stop() is called. One thread at a time, apart from stop().
///
/// An MPI collective cannot be cancelled: past the deadline MPI may still write to the buffers of
/// the call. So these are kept for the rest of the process, and the group refuses all further
/// calls.
class MpiGroup {
 public:
  struct Settings {
    int rank = 0;
    int size = 1;
    std::string host;
    MpiSettings limits;
  };
  /// All ranks call it.
  explicit MpiGroup(Settings settings);
  ~MpiGroup();
  MpiGroup(MpiGroup const&) = delete;
  MpiGroup& operator=(MpiGroup const&) = delete;

  // As in Communicator, whose checks have been made.
  void all_reduce(at::Tensor const& values, ReduceOp op);
  void reduce_scatter(at::Tensor const& part, at::Tensor const& values, ReduceOp op);
  void all_gather(at::Tensor const& whole, at::Tensor const& part);
  void broadcast(at::Tensor const& values, int root);
  void barrier();
  std::vector<std::vector<std::byte>> gather_bytes(std::span<std::byte const> bytes, int root);
  std::vector<std::vector<std::byte>> all_gather_bytes(std::span<std::byte const> bytes);
  void broadcast_bytes(std::vector<std::byte>& bytes, int root);

  /// Makes the call under way, if any, and all later ones throw. From any thread.
  void stop() { stopped_ = true; }

 private:
  using Bytes = std::vector<std::byte>;
  /// One call under way: its requests, and the owners of all memory that MPI may touch.
  struct Flight {
    char const* collective;
    std::int64_t bytes = 0;
    std::vector<std::shared_ptr<void>> owners;
    std::vector<MPI_Request> requests = {};
  };

  void check_usable(char const* collective) const;
  void wait(Flight flight);
  [[noreturn]] void give_up(Flight flight, std::string const& why);
  void broadcast_memory(std::shared_ptr<void> owner, void* data, std::int64_t count,
                        MPI_Datatype type, int root, char const* collective);
  std::vector<std::int64_t> gather_lengths(std::int64_t own, char const* collective);
  std::vector<Bytes> gather_parts(std::span<std::byte const> bytes,
                                  std::vector<std::int64_t> const& lengths, int root,
                                  char const* collective);
  void check_one_message(at::Tensor const& whole, char const* collective) const;

  Settings settings_;
  MpiReductions reductions_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::string broken_;  // why, empty while all is well
  std::atomic<bool> stopped_ = false;
};

}  // namespace yolohpc::comm
