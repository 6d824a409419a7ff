// Convolutions: with batch norm and activation, and plain with bias.
//
// Letters: B images, H W cells of the input map, h w of the output map.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "yolohpc/model/pass.hpp"

#include "scope.hpp"

namespace yolohpc::model {

enum class Activation { silu, none };

struct ConvSettings {
  std::int64_t in_channels;
  std::int64_t out_channels;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  Activation activation = Activation::silu;
};

/// Convolution without bias (padding kernel / 2), batch norm, activation: the one place of the
/// network where the three happen.
class ConvNorm {
 public:
  ConvNorm(Scope const& scope, ConvSettings const& settings);
  /// (B, in, H, W) -> (B, out, h, w)
  at::Tensor operator()(at::Tensor const& input, Pass const& pass) const;

 private:
  at::Tensor normalise(at::Tensor const& input, Pass const& pass) const;

  ConvSettings settings_;
  at::Tensor weight_;
  BatchNormState norm_;
};

/// Convolution 1x1 with bias.
class PointConv {
 public:
  PointConv(Scope const& scope, std::int64_t in_channels, std::int64_t out_channels);
  at::Tensor operator()(at::Tensor const& input, Pass const& pass) const;
  /// (out)
  at::Tensor const& bias() const { return bias_; }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace yolohpc::model
