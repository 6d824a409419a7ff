#include "mpi_group.hpp"

#include <algorithm>
#include <iomanip>
#include <numeric>
#include <sstream>
#include <utility>

#include <ATen/ops/empty_like.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"

#include "backoff.hpp"
#include "mpi_error.hpp"

namespace yolohpc::comm {
namespace {

using base::ExitCode;

constexpr int bytes_tag = 1;
// Open MPI 4.1 takes its ring algorithm, which moves 2 S bytes whatever the rank count, only for
// calls that are not in place, from 4 ranks and 64 KiB on (ompi/mca/coll/libnbc/nbc_iallreduce.c);
// otherwise 2 S log2(size).
constexpr int ring_ranks = 4;
constexpr std::int64_t ring_bytes = 65536;

std::shared_ptr<void> owner_of(at::Tensor const& tensor) {
  return std::make_shared<at::Tensor>(tensor);
}

std::int64_t byte_count(at::Tensor const& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

std::byte* address(at::Tensor const& tensor, std::int64_t element = 0) {
  return static_cast<std::byte*>(tensor.data_ptr()) +
         element * static_cast<std::int64_t>(tensor.element_size());
}

std::string seconds(double value_s) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(value_s < 10 ? 1 : 0) << value_s << " s";
  return text.str();
}

// Calls piece(first, count) for consecutive ranges that cover 0 .. total.
template <typename Piece>
void in_pieces(std::int64_t total, std::int64_t longest, Piece const& piece) {
  for (std::int64_t first = 0; first < total; first += longest) {
    piece(first, static_cast<int>(std::min(longest, total - first)));
  }
}

}  // namespace

MpiGroup::MpiGroup(Settings settings) : settings_(std::move(settings)) {
  Flight flight{.collective = "communicator start", .owners = {}};
  flight.requests.resize(1);
  check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, &comm_, flight.requests.data()), "MPI_Comm_idup");
  wait(std::move(flight));
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiGroup::~MpiGroup() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised == 0 && broken_.empty() && comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

void MpiGroup::check_usable(char const* collective) const {
  YOLOHPC_CHECK_AS(ExitCode::communication, broken_.empty(), "rank ", settings_.rank, " on ",
                   settings_.host, " cannot do ", collective,
                   ": an earlier collective has failed (", broken_, ")");
  YOLOHPC_CHECK_AS(ExitCode::communication, !stopped_, "rank ", settings_.rank, " on ",
                   settings_.host, " cannot do ", collective, ": the communicator was aborted.");
}

void MpiGroup::wait(Flight flight) {
  base::Stopwatch const watch;
  Backoff backoff;
  for (;;) {
    int finished = 0;
    int const code = MPI_Testall(static_cast<int>(flight.requests.size()), flight.requests.data(),
                                 &finished, MPI_STATUSES_IGNORE);
    if (code == MPI_SUCCESS && finished != 0) return;
    double const waited_s = watch.elapsed_s();
    if (code != MPI_SUCCESS) {
      try {
        check_mpi(code, "MPI_Testall");
      } catch (base::Error const& error) {
        give_up(std::move(flight), base::join("saw the network fail: ", error.what()));
      }
    }
    if (stopped_) give_up(std::move(flight), "was told to stop after " + seconds(waited_s));
    if (waited_s > settings_.limits.timeout_s) {
      give_up(std::move(flight),
              "waited " + seconds(waited_s) +
                  " for the other ranks. One of them has died, is stopped or is far behind: look "
                  "at the "
                  "last lines of each rank. If a rank may take that long, raise --comm-timeout (" +
                  seconds(settings_.limits.timeout_s) + ").");
    }
    backoff.pause();
  }
}

void MpiGroup::give_up(Flight flight, std::string const& why) {
  std::string const amount = flight.bytes > 0 ? base::join(" of ", flight.bytes, " bytes") : "";
  broken_ = base::join("rank ", settings_.rank, " of ", settings_.size, " on ", settings_.host,
                       ", in ", flight.collective, amount, ", ", why);
  // Not freed on purpose: MPI may still write there.
  static_cast<void>(new std::vector<std::shared_ptr<void>>(std::move(flight.owners)));
  base::fail(ExitCode::communication, broken_);
}

void MpiGroup::all_reduce(at::Tensor const& values, ReduceOp op) {
  check_usable("all_reduce");
  bool const copies = settings_.size >= ring_ranks && byte_count(values) >= ring_bytes;
  at::Tensor const source = copies ? at::empty_like(values).copy_(values) : values;
  in_pieces(
      values.numel(), settings_.limits.max_message_elements, [&](std::int64_t first, int count) {
        Flight flight{.collective = "all_reduce",
                      .bytes = byte_count(values),
                      .owners = {owner_of(values), owner_of(source)}};
        flight.requests.resize(1);
        check_mpi(MPI_Iallreduce(copies ? address(source, first) : MPI_IN_PLACE,
                                 address(values, first), count, mpi_type(values.scalar_type()),
                                 reductions_.find(values.scalar_type(), op), comm_,
                                 flight.requests.data()),
                  "MPI_Iallreduce");
        wait(std::move(flight));
      });
}

void MpiGroup::check_one_message(at::Tensor const& whole, char const* collective) const {
  YOLOHPC_CHECK(whole.numel() <= settings_.limits.max_message_elements, collective, " got ",
                whole.numel(), " elements; over MPI at most ",
                settings_.limits.max_message_elements, " fit in one call. Split the tensor.");
}

void MpiGroup::reduce_scatter(at::Tensor const& part, at::Tensor const& values, ReduceOp op) {
  check_usable("reduce_scatter");
  check_one_message(values, "reduce_scatter");
  // MPI forbids one memory for both sides, which the caller may use.
  at::Tensor const result = part.is_alias_of(values) ? at::empty_like(part) : part;
  Flight flight{.collective = "reduce_scatter",
                .bytes = byte_count(values),
                .owners = {owner_of(result), owner_of(values)}};
  flight.requests.resize(1);
  check_mpi(MPI_Ireduce_scatter_block(
                address(values), address(result), static_cast<int>(part.numel()),
                mpi_type(values.scalar_type()), reductions_.find(values.scalar_type(), op), comm_,
                flight.requests.data()),
            "MPI_Ireduce_scatter_block");
  wait(std::move(flight));
  if (!result.is_same(part)) part.copy_(result);
}

void MpiGroup::all_gather(at::Tensor const& whole, at::Tensor const& part) {
  check_usable("all_gather");
  check_one_message(whole, "all_gather");
  auto const count = static_cast<int>(part.numel());
  auto const type = mpi_type(whole.scalar_type());
  bool const in_place = address(part) == address(whole, settings_.rank * part.numel());
  Flight flight{.collective = "all_gather",
                .bytes = byte_count(whole),
                .owners = {owner_of(whole), owner_of(part)}};
  flight.requests.resize(1);
  check_mpi(MPI_Iallgather(in_place ? MPI_IN_PLACE : address(part), count, type, address(whole),
                           count, type, comm_, flight.requests.data()),
            "MPI_Iallgather");
  wait(std::move(flight));
}

void MpiGroup::broadcast(at::Tensor const& values, int root) {
  check_usable("broadcast");
  broadcast_memory(owner_of(values), address(values), values.numel(),
                   mpi_type(values.scalar_type()), root, "broadcast");
}

void MpiGroup::broadcast_memory(std::shared_ptr<void> owner, void* data, std::int64_t count,
                                MPI_Datatype type, int root, char const* collective) {
  int type_bytes = 0;
  check_mpi(MPI_Type_size(type, &type_bytes), "MPI_Type_size");
  in_pieces(count, settings_.limits.max_message_elements, [&](std::int64_t first, int piece) {
    Flight flight{.collective = collective, .bytes = count * type_bytes, .owners = {owner}};
    flight.requests.resize(1);
    check_mpi(MPI_Ibcast(static_cast<std::byte*>(data) + first * type_bytes, piece, type, root,
                         comm_, flight.requests.data()),
              "MPI_Ibcast");
    wait(std::move(flight));
  });
}

void MpiGroup::barrier() {
  check_usable("barrier");
  Flight flight{.collective = "barrier", .owners = {}};
  flight.requests.resize(1);
  check_mpi(MPI_Ibarrier(comm_, flight.requests.data()), "MPI_Ibarrier");
  wait(std::move(flight));
}

std::vector<std::int64_t> MpiGroup::gather_lengths(std::int64_t own, char const* collective) {
  auto const mine = std::make_shared<std::int64_t>(own);
  auto const all =
      std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(settings_.size));
  Flight flight{.collective = collective, .bytes = own, .owners = {mine, all}};
  flight.requests.resize(1);
  check_mpi(MPI_Iallgather(mine.get(), 1, MPI_INT64_T, all->data(), 1, MPI_INT64_T, comm_,
                           flight.requests.data()),
            "MPI_Iallgather");
  wait(std::move(flight));
  return *all;
}

// Point to point: MPI_Gatherv has int offsets, which end at 2 GiB.
std::vector<MpiGroup::Bytes> MpiGroup::gather_parts(std::span<std::byte const> bytes,
                                                    std::vector<std::int64_t> const& lengths,
                                                    int root, char const* collective) {
  auto const parts = std::make_shared<std::vector<Bytes>>();
  auto const own = std::make_shared<Bytes>(bytes.begin(), bytes.end());
  Flight flight{.collective = collective,
                .bytes = static_cast<std::int64_t>(bytes.size()),
                .owners = {parts, own}};
  std::int64_t const longest = settings_.limits.max_message_elements;
  auto const receive_from = [&](int rank, Bytes& part) {
    in_pieces(std::ssize(part), longest, [&](std::int64_t first, int count) {
      flight.requests.emplace_back();
      check_mpi(MPI_Irecv(&part[static_cast<std::size_t>(first)], count, MPI_BYTE, rank, bytes_tag,
                          comm_, &flight.requests.back()),
                "MPI_Irecv");
    });
  };
  if (settings_.rank != root) {
    in_pieces(std::ssize(*own), longest, [&](std::int64_t first, int count) {
      flight.requests.emplace_back();
      check_mpi(MPI_Isend(&(*own)[static_cast<std::size_t>(first)], count, MPI_BYTE, root,
                          bytes_tag, comm_, &flight.requests.back()),
                "MPI_Isend");
    });
  } else {
    for (auto const length : lengths) parts->emplace_back(static_cast<std::size_t>(length));
    for (int rank = 0; rank < settings_.size; ++rank) {
      Bytes& part = (*parts)[static_cast<std::size_t>(rank)];
      if (rank == root) {
        part = *own;
      } else {
        receive_from(rank, part);
      }
    }
  }
  wait(std::move(flight));
  return std::move(*parts);
}

std::vector<std::vector<std::byte>> MpiGroup::gather_bytes(std::span<std::byte const> bytes,
                                                           int root) {
  check_usable("gather_bytes");
  auto const lengths = gather_lengths(std::ssize(bytes), "gather_bytes");
  return gather_parts(bytes, lengths, root, "gather_bytes");
}

std::vector<std::vector<std::byte>> MpiGroup::all_gather_bytes(std::span<std::byte const> bytes) {
  check_usable("all_gather_bytes");
  constexpr int collector = 0;
  auto const lengths = gather_lengths(std::ssize(bytes), "all_gather_bytes");
  auto const total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  auto const whole = std::make_shared<Bytes>();
  whole->reserve(static_cast<std::size_t>(total));
  for (auto const& part : gather_parts(bytes, lengths, collector, "all_gather_bytes")) {
    whole->insert(whole->end(), part.begin(), part.end());
  }
  whole->resize(static_cast<std::size_t>(total));
  broadcast_memory(whole, whole->data(), total, MPI_BYTE, collector, "all_gather_bytes");
  std::vector<Bytes> parts;
  auto next = whole->begin();
  for (auto const length : lengths) {
    parts.emplace_back(next, next + length);
    next += length;
  }
  return parts;
}

void MpiGroup::broadcast_bytes(std::vector<std::byte>& bytes, int root) {
  check_usable("broadcast_bytes");
  auto const length = std::make_shared<std::int64_t>(std::ssize(bytes));
  broadcast_memory(length, length.get(), 1, MPI_INT64_T, root, "broadcast_bytes");
  auto const content = std::make_shared<Bytes>(std::move(bytes));
  content->resize(static_cast<std::size_t>(*length));
  broadcast_memory(content, content->data(), *length, MPI_BYTE, root, "broadcast_bytes");
  bytes = std::move(*content);
}

}  // namespace yolohpc::comm
