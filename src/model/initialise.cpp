#include "initialise.hpp"

#include <cmath>

#include <ATen/ATen.h>

#include "yolohpc/base/philox.hpp"

namespace yolohpc::model {
namespace {

at::Tensor uniform_kernel(at::IntArrayRef shape, base::Philox random) {
  auto values = at::empty(shape, at::kFloat);
  double const bound = 1 / std::sqrt(static_cast<double>(shape[1] * shape[2] * shape[3]));
  auto* const data = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<float>(random.uniform(-bound, bound));
  }
  return values;
}

}  // namespace

void initialise_entries(std::vector<StateEntry> const& entries, std::uint64_t seed) {
  at::NoGradGuard const no_grad;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    at::Tensor tensor = entries[k].tensor;
    switch (entries[k].kind) {
      case StateKind::conv_weight:
        tensor.copy_(uniform_kernel(tensor.sizes(), {seed, 0, k, base::Purpose::init}));
        break;
      case StateKind::norm_weight:
      case StateKind::running_var:
        tensor.fill_(1);
        break;
      case StateKind::norm_bias:
      case StateKind::running_mean:
      case StateKind::batch_count:
        tensor.zero_();
        break;
      case StateKind::conv_bias:
      case StateKind::frozen:
        break;
    }
  }
}

}  // namespace yolohpc::model
