// Tensor types and reductions in the words of MPI.
#pragma once

#include <array>

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::comm {

/// The MPI type of one element; the half-precision types travel as 16-bit integers.
MPI_Datatype mpi_type(at::ScalarType type);

/// Reductions by element type. MPI knows none for float16 and bfloat16: these are operators of our
/// own, which add in float32. Lives while MPI runs.
class MpiReductions {
 public:
  MpiReductions();
  ~MpiReductions();
  MpiReductions(MpiReductions const&) = delete;
  MpiReductions& operator=(MpiReductions const&) = delete;

  MPI_Op find(at::ScalarType type, ReduceOp op) const;

 private:
  std::array<MPI_Op, 3> half_;      // by ReduceOp
  std::array<MPI_Op, 3> bfloat16_;  // by ReduceOp
};

}  // namespace yolohpc::comm
