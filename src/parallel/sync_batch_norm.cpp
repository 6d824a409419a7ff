#include "yolohpc/parallel/sync_batch_norm.hpp"

#include <cstdint>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// Moments of one channel each over all ranks.
struct Moments {
  at::Tensor mean;      ///< (C) float32
  at::Tensor variance;  ///< (C) float32, biased
  at::Tensor count;     ///< () float64, N
};

at::IntArrayRef cell_dims() {
  static constexpr std::int64_t dims[] = {0, 2, 3};
  return dims;
}

at::Tensor per_channel(at::Tensor const& values) {
  return values.reshape({1, -1, 1, 1});
}

// The local variance is taken around the local mean in float32; only the combination, where large
// squares are subtracted, needs float64.
Moments moments_over_ranks(at::Tensor const& input, comm::Communicator& communicator) {
  auto const [variance, mean] = at::var_mean(input, cell_dims(), /*unbiased=*/false);
  auto const cells = input.numel() / input.size(1);
  auto const mean64 = mean.to(at::kDouble);
  auto const count = at::full({1}, cells, mean64.options());
  auto const squares = (variance.to(at::kDouble) + mean64 * mean64) * cells;
  auto const sums = at::cat({mean64 * cells, squares, count});
  communicator.all_reduce_in_place(sums, comm::ReduceOp::sum);
  auto const channels = input.size(1);
  auto const total = sums.narrow(0, 2 * channels, 1).squeeze(0);
  auto const common_mean = sums.narrow(0, 0, channels) / total;
  auto const common_squares = sums.narrow(0, channels, channels) / total;
  auto const common_variance = (common_squares - common_mean * common_mean).clamp_min(0);
  return {common_mean.to(at::kFloat), common_variance.to(at::kFloat), total};
}

void update_running(SyncNormState const& state, Moments const& moments, double momentum) {
  if (!state.running_mean.defined()) return;
  auto const unbiased = (moments.variance * (moments.count / (moments.count - 1))).to(at::kFloat);
  state.running_mean.mul_(1 - momentum).add_(moments.mean, momentum);
  state.running_var.mul_(1 - momentum).add_(unbiased, momentum);
}

class SyncBatchNorm : public torch::autograd::Function<SyncBatchNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor const& input,
                            at::Tensor const& weight, at::Tensor const& bias,
                            SyncNormState const& state, SyncNormSettings const& settings,
                            comm::Communicator* communicator) {
    auto const wide = input.to(at::kFloat);
    auto const moments = moments_over_ranks(wide, *communicator);
    update_running(state, moments, settings.momentum);
    auto const inverse = (moments.variance + settings.epsilon).rsqrt();
    context->save_for_backward({input, weight, moments.mean, inverse, moments.count});
    // Autograd stores tensors and plain values; the owner keeps the communicator alive.
    context->saved_data["communicator"] =
        static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(communicator));
    auto const output = at::batch_norm(wide, weight, bias, moments.mean, moments.variance,
                                       /*training=*/false, 0, settings.epsilon, false);
    return output.to(input.scalar_type());
  }

  static tensor_list backward(AutogradContext* context, tensor_list const& gradients) {
    auto const saved = context->get_saved_variables();
    auto* const communicator = reinterpret_cast<comm::Communicator*>(
        static_cast<std::intptr_t>(context->saved_data["communicator"].toInt()));
    auto const& inverse = saved[3];
    auto const output_grad = gradients[0].to(at::kFloat);
    auto const centred = saved[0].to(at::kFloat) - per_channel(saved[2]);
    auto const bias_grad = output_grad.sum(cell_dims());
    auto const product = (output_grad * centred).sum(cell_dims());
    auto const sums = at::cat({bias_grad, product}).to(at::kDouble);
    communicator->all_reduce_in_place(sums, comm::ReduceOp::sum);
    auto const means = (sums / saved[4]).to(at::kFloat).chunk(2);
    auto const slope = means[1] * inverse * inverse;
    auto const input_grad = (output_grad - per_channel(means[0]) - centred * per_channel(slope)) *
                            per_channel(inverse * saved[1]);
    return {input_grad.to(saved[0].scalar_type()), product * inverse, bias_grad, {}, {}, {}};
  }
};

}  // namespace

at::Tensor sync_batch_norm(at::Tensor const& input, SyncNormState const& state,
                           SyncNormSettings const& settings, comm::Communicator& communicator) {
  auto const cells = input.numel() / input.size(1) * communicator.size();
  YOLOHPC_CHECK(cells >= 2, "batch norm over ", communicator.size(), " rank(s) and an input of ",
                input.sizes(),
                " has one value per channel, so its variance is unknown. Use a larger batch or "
                "image size.");
  return SyncBatchNorm::apply(input, state.weight, state.bias, state, settings, &communicator);
}

}  // namespace yolohpc::parallel
