#include "mpi_types.hpp"

#include <algorithm>
#include <cstddef>

#include "yolohpc/base/error.hpp"

#include "mpi_error.hpp"

namespace yolohpc::comm {
namespace {

struct Sum {
  float operator()(float a, float b) const { return a + b; }
};
struct Max {
  float operator()(float a, float b) const { return std::max(a, b); }
};
struct Min {
  float operator()(float a, float b) const { return std::min(a, b); }
};

// The signature is MPI_User_function.
template <typename Value, typename Combine>
void reduce_pairs(void* in, void* in_out, int* count, MPI_Datatype*) {
  auto const* a = static_cast<Value const*>(in);
  auto* b = static_cast<Value*>(in_out);
  for (int i = 0; i < *count; ++i) {
    b[i] = static_cast<Value>(Combine{}(static_cast<float>(a[i]), static_cast<float>(b[i])));
  }
}

MPI_Op make_op(MPI_User_function* function) {
  constexpr int commutes = 1;
  MPI_Op op = MPI_OP_NULL;
  check_mpi(MPI_Op_create(function, commutes, &op), "MPI_Op_create");
  return op;
}

template <typename Value>
std::array<MPI_Op, 3> make_ops() {
  return {make_op(reduce_pairs<Value, Sum>), make_op(reduce_pairs<Value, Max>),
          make_op(reduce_pairs<Value, Min>)};
}

}  // namespace

MPI_Datatype mpi_type(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kFloat:
      return MPI_FLOAT;
    case at::kHalf:
      return MPI_UINT16_T;
    case at::kBFloat16:
      return MPI_UINT16_T;
    case at::kLong:
      return MPI_INT64_T;
    case at::kInt:
      return MPI_INT32_T;
    case at::kByte:
      return MPI_UINT8_T;
    default:
      base::fail(base::ExitCode::failure, "no MPI type for tensors of ", type, ".");
  }
}

MpiReductions::MpiReductions() : half_(make_ops<at::Half>()), bfloat16_(make_ops<at::BFloat16>()) {}

MpiReductions::~MpiReductions() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised != 0) return;
  for (auto* ops : {&half_, &bfloat16_}) {
    for (MPI_Op& op : *ops) MPI_Op_free(&op);
  }
}

MPI_Op MpiReductions::find(at::ScalarType type, ReduceOp op) const {
  auto const index = static_cast<std::size_t>(op);
  if (type == at::kHalf) return half_[index];
  if (type == at::kBFloat16) return bfloat16_[index];
  return std::array{MPI_SUM, MPI_MAX, MPI_MIN}[index];
}

}  // namespace yolohpc::comm
