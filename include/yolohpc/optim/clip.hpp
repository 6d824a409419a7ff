// Gradient norm, clipping and the finite check, on flat gradients and without waiting for the
// device.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace yolohpc::optim {

/// What one clipping found. Both live on the gradients' device; reading them waits for it.
struct ClipResult {
  at::Tensor norm;  ///< () float64, L2 norm of all gradients before clipping
  at::Tensor
      found_inf;  ///< () float32, 1 when the norm is not finite, else 0: the step has to be skipped
};

/// Clips the global L2 norm of a set of flat gradients, all parameters together.
///
/// The square sum and the clipping are two calls, so that ranks which own different shards can add
/// their square sums in between; then all take the same decision.
class GradientClipper {
 public:
  /// \param gradients  float32, dense, on one device; referred to, not copied
  /// \param max_norm   above 0
  GradientClipper(std::vector<at::Tensor> gradients, double max_norm);

  /// () float64. Summed in pieces of fixed size and in double precision between them, so that it
  /// hardly depends on how the gradients are cut.
  at::Tensor square_sum() const;

  /// Multiplies the gradients by min(1, max_norm / (norm + 1e-6)), norm = sqrt(square_sum).
  ClipResult clip_in_place(at::Tensor const& square_sum) const;

 private:
  std::vector<at::Tensor> gradients_;
  std::vector<at::Tensor> pieces_;
  double max_norm_;
};

/// Takes back what a bad step wrote into tensors that no optimizer guards (running statistics of
/// BatchNorm): `live = before` where found_inf is 1. Does not wait for the device. \param live,
/// before  same shape and type \param found_inf     () float32, 0 or 1
void undo_if_in_place(at::Tensor const& live, at::Tensor const& before,
                      at::Tensor const& found_inf);

}  // namespace yolohpc::optim
