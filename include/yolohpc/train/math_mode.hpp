// How LibTorch computes in this process: precision of float32 products and reproducibility.
#pragma once

namespace yolohpc::train {

struct MathMode {
  bool tf32 = true;  ///< TensorFloat-32 in float32 products and convolutions of GPUs
  bool deterministic =
      false;  ///< prefer algorithms with the same bits in every run; on CPUs all are
};

/// Sets it for the whole process; call before the first network is made.
void set_math_mode(MathMode mode);

}  // namespace yolohpc::train
