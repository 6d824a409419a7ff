#include "yolohpc/optim/optimizer.hpp"

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

#include "segment_optimizer.hpp"

namespace yolohpc::optim {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(std::vector<Segment> const& segments) : sgd_(segments) {
    steps_ = at::zeros({}, segments.front().param.options().requires_grad(false));
  }
  OptimizerKind kind() const override { return OptimizerKind::sgd; }
  void step(std::span<GroupHyper const> groups, at::Tensor const& found_inf) override {
    at::NoGradGuard const no_grad;
    sgd_.step(groups, found_inf);
    count_step(steps_, found_inf);
  }
  std::vector<RoleState> state() const override { return {{"momentum", sgd_.momentum()}}; }

 private:
  SegmentSgd sgd_;
};

class AdamW final : public Optimizer {
 public:
  AdamW(std::vector<Segment> const& segments, AdamSettings settings)
      : settings_(settings),
        exp_avg_(zeros_like_segments(segments)),
        exp_avg_sq_(zeros_like_segments(segments)),
        lists_(lists_by_group(segments, {exp_avg_, exp_avg_sq_})) {
    steps_ = at::zeros({}, segments.front().param.options().requires_grad(false));
  }
  OptimizerKind kind() const override { return OptimizerKind::adamw; }

  void step(std::span<GroupHyper const> groups, at::Tensor const& found_inf) override {
    constexpr bool amsgrad = false;
    constexpr bool maximize = false;
    at::NoGradGuard const no_grad;
    count_step(steps_, found_inf);
    std::optional<at::Tensor> const skip =
        found_inf.defined() ? std::optional(found_inf) : std::nullopt;
    for (auto const& [group, lists] : lists_) {
      auto const& hyper = hyper_of(groups, group);
      std::vector<at::Tensor> const steps(lists.params.size(), steps_);
      at::_fused_adamw_(lists.params, lists.grads, lists.states[0], lists.states[1], {}, steps,
                        hyper.lr, hyper.momentum, settings_.beta2, hyper.weight_decay,
                        settings_.eps, amsgrad, maximize, std::nullopt, skip);
    }
  }

  std::vector<RoleState> state() const override {
    return {{"exp_avg", exp_avg_}, {"exp_avg_sq", exp_avg_sq_}};
  }

 private:
  AdamSettings settings_;
  std::vector<at::Tensor> exp_avg_;
  std::vector<at::Tensor> exp_avg_sq_;
  std::map<int, GroupLists> lists_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<Segment> segments) {
  check_segments(segments);
  return std::make_unique<Sgd>(segments);
}

std::unique_ptr<Optimizer> make_adamw(std::vector<Segment> segments, AdamSettings settings) {
  check_segments(segments);
  return std::make_unique<AdamW>(segments, settings);
}

std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, std::vector<Segment> segments,
                                          std::vector<KernelSlot> kernels) {
  switch (kind) {
    case OptimizerKind::sgd:
      return make_sgd(std::move(segments));
    case OptimizerKind::adamw:
      return make_adamw(std::move(segments));
    case OptimizerKind::musgd:
      return make_musgd(std::move(segments), std::move(kernels));
  }
  base::fail(base::ExitCode::usage, "unknown optimizer kind ", static_cast<int>(kind));
}

}  // namespace yolohpc::optim
