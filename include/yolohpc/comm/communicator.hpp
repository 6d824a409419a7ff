// Communicator: collectives over tensors and bytes, the same interface for MPI, NCCL and a lone
// process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/comm/world.hpp"

namespace yolohpc::comm {

enum class ReduceOp { sum, max, min };

char const* name_of(ReduceOp op);

/// Handle of a collective that was started and not waited for. It keeps the tensors alive; letting
/// it go without wait() is allowed, the collective goes on.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Afterwards the result may be used: at once (host tensors), or by work that is queued on the
  /// caller's current stream from here on (device tensors, without a host wait). A second call
  /// returns at once. \throws Error  communication, as the collective itself
  virtual void wait() = 0;
  /// True when the collective is over, well or not; never blocks.
  virtual bool done() = 0;
};

/// The ranks of the job, tied together for collectives.
///
/// Rules that hold for all calls:
/// - All ranks call the same collectives in the same order, with the same shapes, types and roots
/// (byte
///   vectors may differ in length where it says so). The order among asynchronous calls and the
///   order among the others must each be the same everywhere; the two may interleave freely.
/// - One thread at a time uses a communicator, apart from abort().
/// - Tensor types: float64 float32 float16 bfloat16 int64 int32 uint8. The half-precision types are
/// added in
///   float32 and rounded after each addition.
/// - Tensors are dense in memory (contiguous in some order of dimensions, equal on all ranks);
/// empty ones are
///   allowed. Where a shape speaks of size(), the tensor is contiguous in the usual order.
/// - With one rank count, a reduction gives the same bits on every rank and in every run (MPI; NCCL
/// too as long
///   as the machine and its settings stay the same).
/// - Every call has the deadline that its maker was given. Past it, it throws Error (communication)
/// that names
///   rank, host, collective and seconds waited; the communicator is then broken, every later call
///   throws, and all that is left is to end the job (World::abort).
/// - Misuse (a tensor on the wrong device, a shape that does not fit) throws Error (failure) before
/// anything is
///   sent. max and min of NaN are unspecified.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  bool is_root() const { return place_.rank == 0; }
  std::string const& host() const { return place_.host; }
  /// "mpi", "nccl" or "single".
  virtual char const* backend() const = 0;

  /// \param values  any shape; replaced by the reduction over ranks
  void all_reduce_in_place(at::Tensor const& values, ReduceOp op);
  /// Like all_reduce_in_place, but returns at once. `values` must not be touched before the
  /// handle's wait().
  std::unique_ptr<Pending> all_reduce_async(at::Tensor const& values, ReduceOp op);
  /// \param values  (size * k, ...) contiguous
  /// \return  (k, ...) the part of the reduction that belongs to this rank: rows rank * k .. (rank
  /// + 1) * k - 1
  at::Tensor reduce_scatter(at::Tensor const& values, ReduceOp op);
  /// The same into a tensor that exists. `part` (k, ...) may be this rank's rows of `values`.
  void reduce_scatter_into(at::Tensor const& part, at::Tensor const& values, ReduceOp op);
  /// \param part  (k, ...) contiguous
  /// \return  (size * k, ...) the parts of all ranks, by rank
  at::Tensor all_gather(at::Tensor const& part);
  /// The same into a tensor that exists. `part` may be this rank's rows of `whole`.
  void all_gather_into(at::Tensor const& whole, at::Tensor const& part);
  /// \param values  any shape; replaced by those of rank `root`
  void broadcast_in_place(at::Tensor const& values, int root);
  /// Returns when all ranks have called it.
  void barrier();

  /// Bytes and their lengths may differ from rank to rank; host memory with every backend.
  /// \return  on `root` (size) what each rank gave, by rank; elsewhere empty
  std::vector<std::vector<std::byte>> gather_bytes(std::span<std::byte const> bytes, int root);
  /// \return  (size) what each rank gave, by rank, on all ranks
  std::vector<std::vector<std::byte>> all_gather_bytes(std::span<std::byte const> bytes);
  /// \param bytes  replaced, length included, by those of `root`
  void broadcast_bytes(std::vector<std::byte>& bytes, int root);

  /// Puts the work that is queued on the caller's current stream under this communicator's
  /// deadline: a replayed CUDA graph holds collectives that the communicator does not see. Nothing
  /// to do for host tensors.
  virtual void watch_queued_work(std::string const& what);

  /// Makes every collective that is under way or comes later fail, on this rank, as soon as
  /// possible. Callable from any thread. Peers notice by their deadline at the latest; World::abort
  /// is what ends them at once.
  virtual void abort() = 0;

  /// Seconds that the caller's thread has spent waiting inside this communicator and its handles
  /// since the last take_waited_s. With NCCL, streams wait for each other without the host and that
  /// time is not seen here.
  double waited_s() const { return static_cast<double>(waited_ns_->load()) * 1e-9; }
  /// Returns it and starts again from zero.
  double take_waited_s();

 protected:
  struct Place {
    int rank = 0;
    int size = 1;
    std::string host;
  };
  explicit Communicator(Place place) : place_(std::move(place)) {}

  using WaitCounter = std::shared_ptr<std::atomic<std::int64_t>>;
  /// Nanoseconds; shared with handles, which may outlive the communicator.
  WaitCounter const& wait_counter() const { return waited_ns_; }
  Place const& place() const { return place_; }

 private:
  /// Throws unless this backend can reach the memory of `values`.
  virtual void check_reachable(at::Tensor const& values, char const* collective) const = 0;
  // What a backend does; arguments are checked and not empty, rank counts include 1.
  virtual void do_all_reduce(at::Tensor const& values, ReduceOp op) = 0;
  virtual std::unique_ptr<Pending> do_all_reduce_async(at::Tensor const& values, ReduceOp op) = 0;
  virtual void do_reduce_scatter(at::Tensor const& part, at::Tensor const& values, ReduceOp op) = 0;
  virtual void do_all_gather(at::Tensor const& whole, at::Tensor const& part) = 0;
  virtual void do_broadcast(at::Tensor const& values, int root) = 0;
  virtual void do_barrier() = 0;
  virtual std::vector<std::vector<std::byte>> do_gather_bytes(std::span<std::byte const> bytes,
                                                              int root) = 0;
  virtual std::vector<std::vector<std::byte>> do_all_gather_bytes(
      std::span<std::byte const> bytes) = 0;
  virtual void do_broadcast_bytes(std::vector<std::byte>& bytes, int root) = 0;

  void check_values(at::Tensor const& values, char const* collective) const;
  void check_root(int root, char const* collective) const;

  Place place_;
  WaitCounter waited_ns_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

/// A communicator of one rank that needs no MPI; any device. Used by tools and tests of other
/// modules.
std::unique_ptr<Communicator> make_single_communicator();

struct MpiSettings {
  double timeout_s = 600;  ///< deadline of every collective, above 0
  /// MPI counts elements in an int; longer tensors and byte vectors go in pieces of this size.
  /// Smaller only in tests. 1 .. 2^30
  std::int64_t max_message_elements = std::int64_t{1} << 30;
};

/// Host tensors over MPI. All ranks of `world` call it. One thread of its own makes progress on
/// asynchronous reductions while the caller computes; it has its own MPI communicator, so that the
/// two never meet. The World must outlive it. \throws Error  usage: a setting is out of range;
/// communication: MPI fails
std::unique_ptr<Communicator> make_mpi_communicator(World const& world, MpiSettings settings = {});

struct NcclSettings {
  int device_index = 0;    ///< as choose_device gives it
  double timeout_s = 600;  ///< deadline of the start and of every collective, above 0
};

/// Device tensors over NCCL, on a stream of its own; bytes go through `host`, which must outlive
/// it. All ranks of `world` call it. Refuses two ranks on one device, starts NCCL without blocking
/// and with the deadline, and proves with one small all-reduce that data moves.
///
/// Calls are queued and return without waiting for the device: a collective starts after the work
/// that is on the caller's current stream, and work queued there later starts after the collective
/// (for all_reduce_async: after the handle's wait()). A thread watches for errors of NCCL and for
/// the deadline; it then ends NCCL, so that streams go on, and the next call throws. If no call
/// comes within 10 s, it prints the message and ends the job. \throws Error  usage: built without
/// CUDA, a setting is out of range, two ranks share a device;
///                communication: NCCL fails or the deadline passes, with NCCL's own text
std::unique_ptr<Communicator> make_nccl_communicator(World const& world, Communicator& host,
                                                     NcclSettings settings);

}  // namespace yolohpc::comm
