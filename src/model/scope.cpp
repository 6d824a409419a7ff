#include "scope.hpp"

#include <ATen/ATen.h>

namespace yolohpc::model {

bool is_parameter(StateKind kind) {
  return kind != StateKind::running_mean && kind != StateKind::running_var &&
         kind != StateKind::batch_count;
}

at::Tensor Scope::add(std::string const& name, at::IntArrayRef shape, StateKind kind) const {
  auto const type = kind == StateKind::batch_count ? at::kLong : at::kFloat;
  bool const starts_at_one = kind == StateKind::norm_weight || kind == StateKind::running_var;
  auto tensor = starts_at_one ? at::ones(shape, type) : at::zeros(shape, type);
  tensor.set_requires_grad(is_parameter(kind) && kind != StateKind::frozen);
  entries_->push_back({prefix_ + name, tensor, kind});
  return tensor;
}

}  // namespace yolohpc::model
