// Exponential moving average of a model's parameters and running statistics.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yolohpc::optim {

struct EmaSettings {
  double decay = 0.9999;
  double tau = 2000;  ///< updates over which the decay rises
};

/// Keeps `ema += (model - ema) (1 - d)`, d = decay (1 - exp(-k / tau)) in update k = 1, 2, ...
///
/// It averages whatever float tensors it is given: flat parameter buffers, flat buffers of the
/// running statistics, constants such as the DFL kernel. Counters (num_batches_tracked) are not
/// given. Source: the reference recipe; fixtures train_*.json, schedule.json.
class Ema {
 public:
  /// Starts as a copy of `model`, whose tensors it keeps referring to: any shapes, float32, dense.
  /// \throws Error  a tensor is not float32; decay is outside [0, 1) or tau not above 0
  Ema(EmaSettings settings, std::vector<at::Tensor> model);

  /// Moves towards the model. Called after every optimizer step, skipped ones included. An element
  /// of the model that is not finite leaves its average as it is, so that one bad step cannot
  /// poison it.
  void update();

  std::int64_t updates() const { return updates_; }
  /// The decay of update k (from 1); 0 for k = 0.
  double decay_at(std::int64_t k) const;
  /// The averages, in the order and layout of the model's tensors. Shares memory: copy out to save
  /// or to evaluate, copy_ in to load.
  std::vector<at::Tensor> const& averages() const { return averages_; }
  /// For a resume, beside the averages. \throws Error (bad data)  negative
  void set_updates(std::int64_t updates);

 private:
  EmaSettings settings_;
  std::vector<at::Tensor> model_;
  std::vector<at::Tensor> averages_;
  std::int64_t updates_ = 0;
};

}  // namespace yolohpc::optim
