// Scope: where blocks register their tensors, in state-dict order and under dotted names.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/model/state.hpp"

namespace yolohpc::model {

/// A dotted prefix into one list of entries. Blocks add tensors in their constructors, so the order
/// of construction is the order of the state dict.
class Scope {
 public:
  /// \param entries  outlives the scope
  Scope(std::vector<StateEntry>& entries, std::string prefix)
      : entries_(&entries), prefix_(std::move(prefix)) {}

  Scope child(std::string const& name) const { return {*entries_, prefix_ + name + "."}; }
  Scope child(std::size_t index) const { return child(std::to_string(index)); }

  /// Registers a tensor of zeros (ones for norm weights and running variances) and returns its
  /// handle.
  at::Tensor add(std::string const& name, at::IntArrayRef shape, StateKind kind) const;

 private:
  std::vector<StateEntry>* entries_;
  std::string prefix_;
};

}  // namespace yolohpc::model
