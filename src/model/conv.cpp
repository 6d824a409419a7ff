#include "conv.hpp"

#include <ATen/ATen.h>

namespace yolohpc::model {
namespace {

void count_flops(Pass const& pass, at::Tensor const& output, at::Tensor const& weight) {
  if (pass.flops == nullptr) return;
  *pass.flops += 2 * output.numel() * (weight.numel() / weight.size(0));
}

}  // namespace

ConvNorm::ConvNorm(Scope const& scope, ConvSettings const& settings) : settings_(settings) {
  auto const& s = settings_;
  weight_ = scope.child("conv").add("weight",
                                    {s.out_channels, s.in_channels / s.groups, s.kernel, s.kernel},
                                    StateKind::conv_weight);
  auto const norm = scope.child("bn");
  norm_.weight = norm.add("weight", {s.out_channels}, StateKind::norm_weight);
  norm_.bias = norm.add("bias", {s.out_channels}, StateKind::norm_bias);
  norm_.running_mean = norm.add("running_mean", {s.out_channels}, StateKind::running_mean);
  norm_.running_var = norm.add("running_var", {s.out_channels}, StateKind::running_var);
  norm.add("num_batches_tracked", {}, StateKind::batch_count);
}

at::Tensor ConvNorm::normalise(at::Tensor const& input, Pass const& pass) const {
  constexpr bool allow_cudnn = true;
  if (!pass.training) {
    return at::batch_norm(input, norm_.weight, norm_.bias, norm_.running_mean, norm_.running_var,
                          false, norm_momentum, norm_epsilon, allow_cudnn);
  }
  auto state = norm_;
  if (!pass.records_statistics) {
    state.running_mean.reset();
    state.running_var.reset();
  }
  if (pass.batch_norm) return pass.batch_norm(input, state);
  return at::batch_norm(input, state.weight, state.bias, state.running_mean, state.running_var,
                        true, norm_momentum, norm_epsilon, allow_cudnn);
}

at::Tensor ConvNorm::operator()(at::Tensor const& input, Pass const& pass) const {
  auto const& s = settings_;
  auto const padding = s.kernel / 2;
  auto const convolved =
      at::conv2d(input, weight_, {}, {s.stride, s.stride}, {padding, padding}, {1, 1}, s.groups);
  count_flops(pass, convolved, weight_);
  auto normalised = normalise(convolved, pass);
  if (s.activation == Activation::none) return normalised;
  // Nothing else holds the normalised map when no gradient is recorded.
  return normalised.requires_grad() ? at::silu(normalised) : at::silu_(normalised);
}

PointConv::PointConv(Scope const& scope, std::int64_t in_channels, std::int64_t out_channels)
    : weight_(scope.add("weight", {out_channels, in_channels, 1, 1}, StateKind::conv_weight)),
      bias_(scope.add("bias", {out_channels}, StateKind::conv_bias)) {}

at::Tensor PointConv::operator()(at::Tensor const& input, Pass const& pass) const {
  auto output = at::conv2d(input, weight_, bias_);
  count_flops(pass, output, weight_);
  return output;
}

}  // namespace yolohpc::model
