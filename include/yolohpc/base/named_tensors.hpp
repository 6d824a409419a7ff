// Named tensors in a fixed order: the form in which state travels between modules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yolohpc::base {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// In order of registration; names are unique.
using NamedTensors = std::vector<NamedTensor>;

/// The tensor called `name`, or an undefined tensor.
at::Tensor find_tensor(NamedTensors const& tensors, std::string const& name);

}  // namespace yolohpc::base
