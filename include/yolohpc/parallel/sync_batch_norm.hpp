// Batch norm whose statistics are those of the whole global batch.
//
// Letters: B images of this rank, C channels, H W cells of a map, N cells of all ranks together.
#pragma once

#include <ATen/core/Tensor.h>

namespace yolohpc::comm {
class Communicator;
}

namespace yolohpc::parallel {

/// What one batch norm reads and writes.
struct SyncNormState {
  at::Tensor weight;        ///< (C) float32
  at::Tensor bias;          ///< (C) float32
  at::Tensor running_mean;  ///< (C) float32, updated in place; undefined: not kept
  at::Tensor running_var;   ///< (C) float32, updated in place with the unbiased variance, N - 1
};

struct SyncNormSettings {
  double momentum;  ///< running = (1 - momentum) running + momentum batch
  double epsilon;
};

/// Normalises with mean and variance over the batches of all ranks: what one rank with the
/// concatenated batch computes, for any split of it, unequal ones included.
///
/// Forward and backward pass each send one message of 2 C (+ 1) float64 sums. The gradients of
/// weight and bias are those of this rank's cells: they become the global ones when the reducer
/// sums them. `communicator` must live until the backward pass is over. Collective, in both passes.
///
/// \param input  (B, C, H, W) floating point; statistics are computed in float32 and combined in
///               float64
/// \return (B, C, H, W) in the type of `input`
/// \throws Error  all ranks together hold less than two values per channel
/// Source: Ioffe and Szegedy, arXiv:1502.03167; moments combined as in Chan et al., 1979.
at::Tensor sync_batch_norm(at::Tensor const& input, SyncNormState const& state,
                           SyncNormSettings const& settings, comm::Communicator& communicator);

}  // namespace yolohpc::parallel
