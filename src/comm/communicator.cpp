#include "yolohpc/comm/communicator.hpp"

#include <algorithm>
#include <array>

#include <ATen/ops/empty.h>

#include "yolohpc/base/error.hpp"

#include "waiting.hpp"

namespace yolohpc::comm {
namespace {

constexpr std::array tensor_types = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16,
                                     at::kLong,   at::kInt,   at::kByte};

// The handle of an empty tensor's reduction.
class Finished : public Pending {
 public:
  void wait() override {}
  bool done() override { return true; }
};

void check_contiguous(at::Tensor const& values, char const* collective) {
  YOLOHPC_CHECK(values.is_contiguous(), collective, " got shape ", values.sizes(), " with strides ",
                values.strides(), ", which is not contiguous. Pass tensor.contiguous().");
}

// `whole` is cut by rows into one part per rank.
void check_cut(at::Tensor const& whole, at::Tensor const& part, int size, char const* collective) {
  check_contiguous(whole, collective);
  check_contiguous(part, collective);
  bool const fits = whole.dim() >= 1 && part.dim() == whole.dim() &&
                    whole.size(0) == part.size(0) * size &&
                    whole.sizes().slice(1) == part.sizes().slice(1);
  YOLOHPC_CHECK(fits, collective, " got a whole of shape ", whole.sizes(), " and a part of shape ",
                part.sizes(), "; with ", size,
                " ranks the whole must have that many times the rows of the part. Pad it.");
  YOLOHPC_CHECK(whole.scalar_type() == part.scalar_type(), collective, " got a whole of ",
                whole.scalar_type(), " and a part of ", part.scalar_type(), ". Cast one of them.");
}

// A part that lies within the whole must be exactly this rank's rows.
void check_no_overlap(at::Tensor const& whole, at::Tensor const& part, int rank,
                      char const* collective) {
  auto const* const begin = static_cast<std::byte const*>(whole.data_ptr());
  auto const* const own = static_cast<std::byte const*>(part.data_ptr());
  auto const part_bytes = static_cast<std::ptrdiff_t>(part.nbytes());
  bool const apart = own + part_bytes <= begin || begin + whole.nbytes() <= own;
  YOLOHPC_CHECK(apart || own == begin + rank * part_bytes, collective,
                ": the part overlaps the whole but is not the rows of rank ", rank,
                ". Pass these rows or separate memory.");
}

}  // namespace

char const* name_of(ReduceOp op) {
  return std::array{"sum", "max", "min"}[static_cast<std::size_t>(op)];
}

void Communicator::check_values(at::Tensor const& values, char const* collective) const {
  YOLOHPC_CHECK(values.defined(), collective,
                " got no tensor at all (an undefined one). Pass an allocated tensor.");
  auto const type = values.scalar_type();
  YOLOHPC_CHECK(
      std::find(tensor_types.begin(), tensor_types.end(), type) != tensor_types.end(), collective,
      " got a tensor of ", type,
      ", which is not among float64 float32 float16 bfloat16 int64 int32 uint8. Cast it.");
  YOLOHPC_CHECK(values.is_non_overlapping_and_dense(), collective, " got shape ", values.sizes(),
                " with strides ", values.strides(),
                ", which has gaps in memory. Pass tensor.contiguous() and copy the result back.");
  check_reachable(values, collective);
}

void Communicator::check_root(int root, char const* collective) const {
  YOLOHPC_CHECK(root >= 0 && root < size(), collective, " got root ", root, "; ranks are 0 .. ",
                size() - 1, ".");
}

void Communicator::all_reduce_in_place(at::Tensor const& values, ReduceOp op) {
  check_values(values, "all_reduce");
  if (values.numel() == 0) return;
  Waiting const waiting(*waited_ns_);
  do_all_reduce(values, op);
}

std::unique_ptr<Pending> Communicator::all_reduce_async(at::Tensor const& values, ReduceOp op) {
  check_values(values, "all_reduce");
  if (values.numel() == 0) return std::make_unique<Finished>();
  return do_all_reduce_async(values, op);
}

at::Tensor Communicator::reduce_scatter(at::Tensor const& values, ReduceOp op) {
  check_values(values, "reduce_scatter");
  YOLOHPC_CHECK(values.dim() >= 1 && values.size(0) % size() == 0, "reduce_scatter got shape ",
                values.sizes(), ", whose rows do not divide among ", size(), " ranks. Pad it.");
  auto shape = values.sizes().vec();
  shape[0] /= size();
  at::Tensor part = at::empty(shape, values.options());
  reduce_scatter_into(part, values, op);
  return part;
}

void Communicator::reduce_scatter_into(at::Tensor const& part, at::Tensor const& values,
                                       ReduceOp op) {
  check_values(values, "reduce_scatter");
  check_values(part, "reduce_scatter");
  check_cut(values, part, size(), "reduce_scatter");
  if (values.numel() == 0) return;
  check_no_overlap(values, part, rank(), "reduce_scatter");
  Waiting const waiting(*waited_ns_);
  do_reduce_scatter(part, values, op);
}

at::Tensor Communicator::all_gather(at::Tensor const& part) {
  check_values(part, "all_gather");
  YOLOHPC_CHECK(part.dim() >= 1,
                "all_gather got a scalar; it joins rows. Pass tensor.reshape({1}).");
  auto shape = part.sizes().vec();
  shape[0] *= size();
  at::Tensor whole = at::empty(shape, part.options());
  all_gather_into(whole, part);
  return whole;
}

void Communicator::all_gather_into(at::Tensor const& whole, at::Tensor const& part) {
  check_values(whole, "all_gather");
  check_values(part, "all_gather");
  check_cut(whole, part, size(), "all_gather");
  if (whole.numel() == 0) return;
  check_no_overlap(whole, part, rank(), "all_gather");
  Waiting const waiting(*waited_ns_);
  do_all_gather(whole, part);
}

void Communicator::broadcast_in_place(at::Tensor const& values, int root) {
  check_values(values, "broadcast");
  check_root(root, "broadcast");
  if (values.numel() == 0) return;
  Waiting const waiting(*waited_ns_);
  do_broadcast(values, root);
}

void Communicator::barrier() {
  Waiting const waiting(*waited_ns_);
  do_barrier();
}

std::vector<std::vector<std::byte>> Communicator::gather_bytes(std::span<std::byte const> bytes,
                                                               int root) {
  check_root(root, "gather_bytes");
  Waiting const waiting(*waited_ns_);
  return do_gather_bytes(bytes, root);
}

std::vector<std::vector<std::byte>> Communicator::all_gather_bytes(
    std::span<std::byte const> bytes) {
  Waiting const waiting(*waited_ns_);
  return do_all_gather_bytes(bytes);
}

void Communicator::broadcast_bytes(std::vector<std::byte>& bytes, int root) {
  check_root(root, "broadcast_bytes");
  Waiting const waiting(*waited_ns_);
  do_broadcast_bytes(bytes, root);
}

void Communicator::watch_queued_work(std::string const&) {}

double Communicator::take_waited_s() {
  return static_cast<double>(waited_ns_->exchange(0)) * 1e-9;
}

}  // namespace yolohpc::comm
