#include <algorithm>
#include <map>
#include <utility>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

#include "orthogonalise.hpp"
#include "segment_optimizer.hpp"

namespace yolohpc::optim {
namespace {

constexpr double muon_share = 0.2;  // of the learning rate, spec/optim.md section 3

/// Where a kernel lies: a segment and the offset of its first element there.
struct Place {
  std::size_t segment;
  std::int64_t begin;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;

  /// The kernel's part of a tensor laid out as the segment, as (Cout, Cin * kh * kw) values in the
  /// order of the kernel's shape: (Cout, Cin, kh, kw), sharing memory.
  at::Tensor view(at::Tensor const& flat) const {
    return flat.as_strided(sizes, strides, flat.storage_offset() + begin);
  }
};

bool is_inside(at::Tensor const& inner, at::Tensor const& outer) {
  return inner.is_alias_of(outer) && inner.storage_offset() >= outer.storage_offset() &&
         inner.storage_offset() + inner.numel() <= outer.storage_offset() + outer.numel();
}

Place place_of(KernelSlot const& kernel, std::size_t index, std::vector<Segment> const& segments) {
  YOLOHPC_CHECK(kernel.param.dim() == 4 && kernel.param.is_non_overlapping_and_dense(), "kernel ",
                index, " has shape ", kernel.param.sizes(), " and strides ", kernel.param.strides(),
                " (needs to be (Cout, Cin, kh, kw), dense)");
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (!is_inside(kernel.param, segments[s].param)) continue;
    auto const begin = kernel.param.storage_offset() - segments[s].param.storage_offset();
    YOLOHPC_CHECK(is_inside(kernel.grad, segments[s].grad) &&
                      kernel.grad.storage_offset() - segments[s].grad.storage_offset() == begin &&
                      kernel.grad.strides() == kernel.param.strides(),
                  "the gradient of kernel ", index, " does not lie in segment ", s,
                  " where its parameters do (offset ", begin, ")");
    YOLOHPC_CHECK(kernel.group == segments[s].group, "kernel ", index, " has group ", kernel.group,
                  ", but its segment ", s, " has ", segments[s].group);
    return {s, begin, kernel.param.sizes().vec(), kernel.param.strides().vec()};
  }
  base::fail(base::ExitCode::failure, "kernel ", index, " of shape ", kernel.param.sizes(),
             " is not inside one of the ", segments.size(),
             " segments. A kernel has to be on one rank as a whole.");
}

class MuSgd final : public Optimizer {
 public:
  MuSgd(std::vector<Segment> segments, std::vector<KernelSlot> const& kernels)
      : segments_(std::move(segments)), sgd_(segments_), muon_momentum_(segments_.size()) {
    steps_ = at::zeros({}, segments_.front().param.options().requires_grad(false));
    auto const zeros = zeros_like_segments(segments_);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      auto place = place_of(kernels[i], i, segments_);
      muon_momentum_[place.segment] = zeros[place.segment];
      auto const rows = place.sizes[0];
      by_shape_[{rows, kernels[i].param.numel() / rows}].push_back(std::move(place));
    }
  }
  OptimizerKind kind() const override { return OptimizerKind::musgd; }

  void step(std::span<GroupHyper const> groups, at::Tensor const& found_inf) override {
    at::NoGradGuard const no_grad;
    move_kernels(groups, found_inf);
    sgd_.step(groups, found_inf);
    count_step(steps_, found_inf);
  }

  std::vector<RoleState> state() const override {
    return {{"momentum", sgd_.momentum()}, {"muon_momentum", muon_momentum_}};
  }

 private:
  /// M = mu M + (1 - mu) g, kept where the step is skipped. \return  u = mu M + (1 - mu) g, (S)
  at::Tensor advance_momentum(std::size_t s, double mu, at::Tensor const& is_skipped) {
    auto const& grad = segments_[s].grad;
    auto const moved = (muon_momentum_[s] * mu).add_(grad, 1 - mu);
    auto update = (moved * mu).add_(grad, 1 - mu);
    auto const kept =
        is_skipped.defined() ? at::where(is_skipped, muon_momentum_[s], moved) : moved;
    muon_momentum_[s].copy_(kept);
    return update;
  }

  void move_kernels(std::span<GroupHyper const> groups, at::Tensor const& found_inf) {
    auto const is_skipped = found_inf.defined() ? found_inf.gt(0) : at::Tensor();
    std::vector<at::Tensor> updates(segments_.size());
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      if (!muon_momentum_[s].defined()) continue;
      updates[s] = advance_momentum(s, hyper_of(groups, segments_[s].group).momentum, is_skipped);
    }
    for (auto const& [shape, places] : by_shape_) orthogonalise_in_place(updates, places);
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      if (!updates[s].defined()) continue;
      if (is_skipped.defined()) updates[s].masked_fill_(is_skipped, 0);
      segments_[s].param.add_(updates[s], -muon_share * hyper_of(groups, segments_[s].group).lr);
    }
  }

  /// Replaces the kernels' parts of `updates`. Kernels of one shape go through the matrix products
  /// together.
  static void orthogonalise_in_place(std::vector<at::Tensor> const& updates,
                                     std::vector<Place> const& places) {
    std::vector<at::Tensor> matrices;
    for (auto const& place : places) {
      matrices.push_back(place.view(updates[place.segment]).flatten(1));
    }
    auto const results = orthogonalise(at::stack(matrices));
    for (std::size_t i = 0; i < places.size(); ++i) {
      auto const target = places[i].view(updates[places[i].segment]);
      target.copy_(results[static_cast<std::int64_t>(i)].reshape(target.sizes()));
    }
  }

  std::vector<Segment> segments_;
  SegmentSgd sgd_;
  std::vector<at::Tensor> muon_momentum_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Place>> by_shape_;
};

}  // namespace

std::unique_ptr<Optimizer> make_musgd(std::vector<Segment> segments,
                                      std::vector<KernelSlot> kernels) {
  check_segments(segments);
  return std::make_unique<MuSgd>(std::move(segments), kernels);
}

}  // namespace yolohpc::optim
