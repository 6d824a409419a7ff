// Dynamic loss scaling for float16 gradients.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/base/named_tensors.hpp"

namespace yolohpc::optim {

struct ScalerSettings {
  double initial_scale = 65536;
  double growth = 2.0;
  double backoff = 0.5;
  int growth_interval = 2000;  ///< good steps in a row before the scale grows
};

/// Keeps the scale that a float16 loss is multiplied by, all on the device.
///
/// Per step: multiply the loss by scale(); after the (reduced) backward pass unscale_in_place;
/// combine the found_inf of all ranks by their maximum; step; update with the combined one, so that
/// the scale stays equal on all ranks. Source: Micikevicius et al., arXiv:1710.03740; defaults of
/// the framework.
class LossScaler {
 public:
  /// \throws Error (usage)  a setting is not above its neutral value
  LossScaler(ScalerSettings settings, at::Device device);

  /// () float32.
  at::Tensor const& scale() const { return scale_; }
  /// Divides `gradients` (float32, dense) by the scale.
  /// \return () float32, 1 when one of them was not finite
  at::Tensor unscale_in_place(std::vector<at::Tensor> const& gradients) const;
  /// Backs the scale off after a bad step, lets it grow after enough good ones.
  void update(at::Tensor const& found_inf);

  /// "scale" () float32 and "growth_tracker" () int32, copies.
  base::NamedTensors state() const;
  /// \throws Error (bad data)  an entry is missing
  void load_state(base::NamedTensors const& state);

 private:
  ScalerSettings settings_;
  at::Tensor scale_;
  at::Tensor growth_tracker_;
};

}  // namespace yolohpc::optim
