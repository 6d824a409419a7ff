// What a forward pass tells the blocks it runs: mode, and how batch norm is computed.
//
// Letters: B images, C channels, H W cells of a map.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace yolohpc::model {

/// Constants of every batch norm in the network. Source: spec/model.md, section 4.
inline constexpr double norm_epsilon = 1e-3;
inline constexpr double norm_momentum = 0.03;  ///< running = 0.97 running + 0.03 batch

/// Everything a batch norm reads and writes in training.
struct BatchNormState {
  at::Tensor weight;        ///< (C)
  at::Tensor bias;          ///< (C)
  at::Tensor running_mean;  ///< (C), updated in training
  at::Tensor running_var;   ///< (C), updated in training with the unbiased variance
};

/// Normalises (B, C, H, W) with the statistics of the batch and updates the running ones (unless
/// they are undefined). Only called in training.
using BatchNormFunction = std::function<at::Tensor(at::Tensor const& input, BatchNormState const&)>;

/// Settings of one forward pass.
struct Pass {
  bool training = false;
  /// False while a layer is computed a second time: its batch has been recorded already.
  bool records_statistics = true;
  BatchNormFunction batch_norm;   ///< empty: the built-in
  std::int64_t* flops = nullptr;  ///< when set, convolutions add 2 * multiply-adds
};

}  // namespace yolohpc::model
