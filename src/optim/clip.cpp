#include "yolohpc/optim/clip.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::optim {
namespace {

// Inside a piece squares are summed in float32 by several lanes: short enough for a relative error
// near 1e-7, long enough that the pieces of the largest model (57 M parameters) go through few
// launches.
constexpr std::int64_t piece_elements = 1 << 16;
constexpr double clip_epsilon = 1e-6;  // spec/optim.md section 6

std::vector<at::Tensor> cut(std::vector<at::Tensor> const& tensors) {
  std::vector<at::Tensor> pieces;
  for (auto const& tensor : tensors) {
    if (tensor.numel() == 0) continue;
    auto const parts = tensor.detach().view(-1).split(piece_elements);
    pieces.insert(pieces.end(), parts.begin(), parts.end());
  }
  return pieces;
}

}  // namespace

GradientClipper::GradientClipper(std::vector<at::Tensor> gradients, double max_norm)
    : gradients_(std::move(gradients)), pieces_(cut(gradients_)), max_norm_(max_norm) {
  YOLOHPC_CHECK(!pieces_.empty(), "gradients to clip are ", gradients_.size(),
                " tensors without elements (nothing to train on this rank). Use fewer ranks.");
  YOLOHPC_CHECK_AS(base::ExitCode::usage, max_norm_ > 0, "the gradient norm limit is ", max_norm_,
                   " (needs to be above 0).");
}

at::Tensor GradientClipper::square_sum() const {
  at::NoGradGuard const no_grad;
  return at::stack(at::_foreach_norm(pieces_, 2)).to(at::kDouble).square_().sum();
}

ClipResult GradientClipper::clip_in_place(at::Tensor const& square_sum) const {
  at::NoGradGuard const no_grad;
  ClipResult result;
  result.norm = square_sum.sqrt();
  result.found_inf = at::isfinite(result.norm).logical_not().to(at::kFloat);
  auto const factor = (max_norm_ / (result.norm + clip_epsilon)).clamp_max(1.0).to(at::kFloat);
  for (auto const& gradient : gradients_) gradient.mul_(factor);
  return result;
}

void undo_if_in_place(at::Tensor const& live, at::Tensor const& before,
                      at::Tensor const& found_inf) {
  at::NoGradGuard const no_grad;
  live.copy_(at::where(found_inf.gt(0), before, live));
}

}  // namespace yolohpc::optim
