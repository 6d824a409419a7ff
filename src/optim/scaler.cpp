#include "yolohpc/optim/scaler.hpp"

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::optim {

LossScaler::LossScaler(ScalerSettings settings, at::Device device)
    : settings_(settings),
      scale_(at::full({}, settings.initial_scale, at::TensorOptions(device).dtype(at::kFloat))),
      growth_tracker_(at::zeros({}, at::TensorOptions(device).dtype(at::kInt))) {
  using base::ExitCode;
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.initial_scale > 0, "the initial loss scale is ",
                   settings.initial_scale, " (needs to be above 0).");
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.growth >= 1, "the loss scale's growth is ",
                   settings.growth, " (needs to be at least 1).");
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.backoff > 0 && settings.backoff < 1,
                   "the loss scale's backoff is ", settings.backoff, " (needs to be in (0, 1)).");
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.growth_interval >= 1,
                   "the loss scale's growth interval is ", settings.growth_interval,
                   " (needs to be at least 1).");
}

at::Tensor LossScaler::unscale_in_place(std::vector<at::Tensor> const& gradients) const {
  at::NoGradGuard const no_grad;
  auto found_inf = at::zeros({}, scale_.options());
  // The quotient in double, rounded once; exact anyway for powers of two.
  auto const inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inverse);
  return found_inf;
}

void LossScaler::update(at::Tensor const& found_inf) {
  at::NoGradGuard const no_grad;
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf, settings_.growth, settings_.backoff,
                         settings_.growth_interval);
}

base::NamedTensors LossScaler::state() const {
  return {{"scale", scale_.clone()}, {"growth_tracker", growth_tracker_.clone()}};
}

void LossScaler::load_state(base::NamedTensors const& state) {
  for (auto const& [name, target] :
       {std::pair("scale", scale_), std::pair("growth_tracker", growth_tracker_)}) {
    auto const stored = base::find_tensor(state, name);
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, stored.defined(), "the loss scaler's entry '", name,
                     "' is missing among ", state.size(),
                     " entries. The checkpoint was written without fp16; start from another one.");
    target.copy_(stored);
  }
}

}  // namespace yolohpc::optim
