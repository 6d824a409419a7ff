// Runs a part of the network without keeping its inner activations.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yolohpc::model {

enum class Round {
  first,   ///< in the forward pass
  second,  ///< again, in the backward pass
};

/// A part of the network as a function of its input maps.
using Part = std::function<std::vector<at::Tensor>(std::vector<at::Tensor> const&, Round)>;

/// The outputs of `part(inputs, Round::first)`. The backward pass calls `part` a second time, under
/// the autocast setting of the first, to get the gradients of inputs and parameters.
///
/// \param parameters  all tensors with gradient that `part` reads beside its inputs
std::vector<at::Tensor> with_checkpoint(Part part, std::vector<at::Tensor> const& inputs,
                                        std::vector<at::Tensor> const& parameters);

}  // namespace yolohpc::model
