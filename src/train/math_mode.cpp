#include "yolohpc/train/math_mode.hpp"

#include <ATen/ATen.h>

namespace yolohpc::train {

void set_math_mode(MathMode mode) {
  auto& context = at::globalContext();
  context.setAllowTF32CuBLAS(mode.tf32);
  context.setAllowTF32CuDNN(mode.tf32);
  // Some operations have no deterministic form on a GPU: they warn instead of ending the run.
  context.setDeterministicAlgorithms(mode.deterministic, /*warn_only=*/true);
  context.setDeterministicCuDNN(mode.deterministic);
}

}  // namespace yolohpc::train
