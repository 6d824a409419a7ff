#include "segment_optimizer.hpp"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::optim {

std::vector<at::Tensor> zeros_like_segments(std::vector<Segment> const& segments) {
  std::vector<at::Tensor> result;
  for (auto const& segment : segments) {
    result.push_back(
        at::zeros(segment.param.sizes(), segment.param.options().requires_grad(false)));
  }
  return result;
}

void check_segments(std::vector<Segment> const& segments) {
  YOLOHPC_CHECK(!segments.empty(),
                "an optimizer got 0 segments (nothing to train on this rank). "
                "Use fewer ranks.");
  for (std::size_t i = 0; i < segments.size(); ++i) {
    auto const& [param, grad, group] = segments[i];
    for (auto const& [tensor, what] : {std::pair(param, "param"), std::pair(grad, "grad")}) {
      YOLOHPC_CHECK(tensor.defined() && tensor.dim() == 1 && tensor.is_contiguous() &&
                        tensor.scalar_type() == at::kFloat,
                    what, " of segment ", i, " has shape ", tensor.sizes(), " and type ",
                    tensor.scalar_type(), " (needs to be 1-D contiguous float32)");
    }
    YOLOHPC_CHECK(param.sizes() == grad.sizes() && param.device() == grad.device(), "segment ", i,
                  " has ", param.numel(), " parameters on ", param.device(), ", but ", grad.numel(),
                  " gradients on ", grad.device());
    YOLOHPC_CHECK(group >= 0, "segment ", i, " has group ", group, " (needs to be at least 0)");
  }
}

std::map<int, GroupLists> lists_by_group(std::vector<Segment> const& segments,
                                         std::vector<std::vector<at::Tensor>> const& states) {
  std::map<int, GroupLists> result;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].param.numel() == 0) continue;
    auto& lists = result[segments[i].group];
    lists.params.push_back(segments[i].param);
    lists.grads.push_back(segments[i].grad);
    lists.states.resize(states.size());
    for (std::size_t role = 0; role < states.size(); ++role) {
      lists.states[role].push_back(states[role][i]);
    }
  }
  return result;
}

GroupHyper const& hyper_of(std::span<GroupHyper const> groups, int group) {
  YOLOHPC_CHECK(static_cast<std::size_t>(group) < groups.size(), "settings of group ", group,
                " are missing: ", groups.size(), " groups were given");
  return groups[static_cast<std::size_t>(group)];
}

SegmentSgd::SegmentSgd(std::vector<Segment> const& segments)
    : momentum_(zeros_like_segments(segments)), lists_(lists_by_group(segments, {momentum_})) {}

void SegmentSgd::step(std::span<GroupHyper const> groups, at::Tensor const& found_inf) {
  constexpr double dampening = 0;
  constexpr bool nesterov = true;
  constexpr bool maximize = false;
  // With a zero buffer mu * v + g is g exactly, so the first step needs no case of its own; a case
  // would be wrong after a first step that found_inf had skipped.
  constexpr bool is_first_step = false;
  // The CPU kernel refuses buffers together with momentum 0, which a warm-up may pass through. This
  // one is lost in rounding wherever it is added.
  constexpr double least_momentum = std::numeric_limits<float>::min();
  std::optional<at::Tensor> const skip =
      found_inf.defined() ? std::optional(found_inf) : std::nullopt;
  for (auto const& [group, lists] : lists_) {
    auto const& hyper = hyper_of(groups, group);
    at::_fused_sgd_(lists.params, lists.grads, lists.states[0], hyper.weight_decay,
                    std::max(hyper.momentum, least_momentum), hyper.lr, dampening, nesterov,
                    maximize, is_first_step, std::nullopt, skip);
  }
}

void count_step(at::Tensor const& steps, at::Tensor const& found_inf) {
  steps.add_(1);
  if (found_inf.defined()) steps.sub_(found_inf);
}

}  // namespace yolohpc::optim
