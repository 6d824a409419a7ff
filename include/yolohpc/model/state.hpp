// The tensors of a network: what each is for, and how the network hands them out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yolohpc::model {

enum class StateKind {
  conv_weight,   ///< (Cout, Cin / groups, kh, kw)
  conv_bias,     ///< (Cout), only in the last layers of the head
  norm_weight,   ///< (C)
  norm_bias,     ///< (C)
  running_mean,  ///< (C)
  running_var,   ///< (C), unbiased
  batch_count,   ///< int64 scalar
  frozen,        ///< a parameter that is never trained
};

/// One entry of the state dict. The handle stays the network's own for its whole life: whoever
/// wants other storage under it uses `set_data`.
struct StateEntry {
  std::string name;
  at::Tensor tensor;
  StateKind kind;
};

bool is_parameter(StateKind kind);  ///< false for the three kinds of batch-norm buffers

/// A parameter and what an optimizer needs to group it. Source of the groups: spec/optim.md,
/// section 2.
struct Parameter {
  std::string name;
  at::Tensor tensor;  ///< float32 leaf; requires_grad is `trainable`
  bool trainable = true;
  bool is_bias = false;          ///< the name contains "bias"
  bool is_norm = false;          ///< weight or bias of a batch norm
  bool in_class_branch = false;  ///< part of the head's class branch (`cv3`)
};

/// What load_state did.
struct LoadReport {
  struct Skipped {
    std::string name;
    std::string reason;
  };
  std::vector<std::string> loaded;
  std::vector<Skipped> skipped;     ///< entries of the network that kept their values
  std::vector<std::string> unused;  ///< names in the source that the network does not have
};

enum class LoadMode {
  strict,    ///< every entry must be there with its shape, and nothing else
  matching,  ///< copy what fits in name and shape, report the rest
};

}  // namespace yolohpc::model
