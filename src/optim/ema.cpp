#include "yolohpc/optim/ema.hpp"

#include <cmath>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::optim {

Ema::Ema(EmaSettings settings, std::vector<at::Tensor> model)
    : settings_(settings), model_(std::move(model)) {
  YOLOHPC_CHECK_AS(base::ExitCode::usage, settings_.decay >= 0 && settings_.decay < 1,
                   "ema-decay is ", settings_.decay, " (needs to be in [0, 1)).");
  YOLOHPC_CHECK_AS(base::ExitCode::usage, settings_.tau > 0, "the EMA's tau is ", settings_.tau,
                   " (needs to be above 0).");
  for (auto& tensor : model_) {
    YOLOHPC_CHECK(tensor.scalar_type() == at::kFloat, "the EMA got a tensor of type ",
                  tensor.scalar_type(), " and shape ", tensor.sizes(), " (needs float32)");
    tensor = tensor.detach();
    averages_.push_back(tensor.clone());
  }
}

double Ema::decay_at(std::int64_t k) const {
  return settings_.decay * (1 - std::exp(-static_cast<double>(k) / settings_.tau));
}

void Ema::update() {
  at::NoGradGuard const no_grad;
  double const share = 1 - decay_at(++updates_);
  for (std::size_t i = 0; i < model_.size(); ++i) {
    averages_[i].add_((model_[i] - averages_[i]).nan_to_num_(0.0, 0.0, 0.0), share);
  }
}

void Ema::set_updates(std::int64_t updates) {
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, updates >= 0, "the EMA's update count is ", updates,
                   " (needs to be at least 0)");
  updates_ = updates;
}

}  // namespace yolohpc::optim
