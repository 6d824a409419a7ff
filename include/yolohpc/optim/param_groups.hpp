// Parameter groups: which learning rate, decay and rule a parameter gets, decided by its name and
// kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace yolohpc::optim {

enum class OptimizerKind { sgd, adamw, musgd };

/// \throws Error (usage)  the text is none of "sgd", "adamw", "musgd"
OptimizerKind parse_optimizer_kind(std::string const& text);
char const* to_string(OptimizerKind kind);

/// weight: convolution kernels; norm: scales of BatchNorm; bias: every bias; muon: kernels whose
/// update is orthogonalised (MuSGD).
enum class GroupKind { weight, norm, bias, muon };

struct ParameterGroup {
  GroupKind kind = GroupKind::weight;
  double lr_factor =
      1.0;              ///< multiplies the base learning rate (3 for the class branch under MuSGD)
  bool decays = false;  ///< gets the weight decay; the others get none
};

/// What the rule looks at.
struct ParameterTraits {
  std::string name;       ///< state-dict key, e.g. "model.23.cv3.0.2.bias"
  std::int64_t dims = 0;  ///< of the tensor: 4 for a convolution kernel
  bool is_norm = false;   ///< belongs to a BatchNorm
};

struct GroupAssignment {
  std::vector<ParameterGroup> groups;  ///< in the order of the recipe, empty groups included
  std::vector<int> group_of;  ///< index into `groups` for each parameter, in the given order
};

/// Assigns every parameter, frozen ones included (they keep a group, but nobody updates them).
///
/// SGD and AdamW: weight, norm, bias. A name that contains "bias" is bias, another BatchNorm
/// parameter is norm, the rest is weight; only weight decays. MuSGD: tensors of 2 or 4 dimensions
/// are muon and decay, the others fall as above; each group is split in two, the class branch
/// ("model.23.cv3.") with `lr_factor` 3 first. Order: weight, norm, bias, muon. Source: the
/// reference recipe, fixtures train_{sgd,adamw,musgd}.json, key "groups".
GroupAssignment group_parameters(std::vector<ParameterTraits> const& parameters,
                                 OptimizerKind kind);

}  // namespace yolohpc::optim
