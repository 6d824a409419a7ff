#include "yolohpc/optim/param_groups.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "yolohpc/base/error.hpp"

namespace yolohpc::optim {
namespace {

constexpr double class_branch_lr_factor = 3.0;

std::string_view take_digits(std::string_view& text) {
  auto const end = std::find_if_not(text.begin(), text.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
  auto const count = static_cast<std::size_t>(end - text.begin());
  auto const digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// "model.<layer>.cv3.<level>.": the head's class branch has one sub-module per pyramid level, which
// tells it from a block's single convolution "model.<layer>.cv3.conv". The layer is 23 in YOLO11,
// another in a graph with another neck.
bool is_in_class_branch(std::string_view name) {
  return take(name, "model.") && !take_digits(name).empty() && take(name, ".cv3.") &&
         !take_digits(name).empty() && name.starts_with('.');
}

GroupKind kind_of(ParameterTraits const& parameter, OptimizerKind optimizer) {
  bool const is_matrix_or_kernel = parameter.dims == 2 || parameter.dims == 4;
  if (optimizer == OptimizerKind::musgd && is_matrix_or_kernel) return GroupKind::muon;
  if (parameter.name.find("bias") != std::string::npos) return GroupKind::bias;
  return parameter.is_norm ? GroupKind::norm : GroupKind::weight;
}

std::vector<ParameterGroup> groups_of(OptimizerKind optimizer) {
  if (optimizer != OptimizerKind::musgd) {
    return {{GroupKind::weight, 1.0, true},
            {GroupKind::norm, 1.0, false},
            {GroupKind::bias, 1.0, false}};
  }
  std::vector<ParameterGroup> groups;
  for (auto const kind : {GroupKind::weight, GroupKind::norm, GroupKind::bias, GroupKind::muon}) {
    bool const decays = kind == GroupKind::weight || kind == GroupKind::muon;
    groups.push_back({kind, class_branch_lr_factor, decays});
    groups.push_back({kind, 1.0, decays});
  }
  return groups;
}

}  // namespace

OptimizerKind parse_optimizer_kind(std::string const& text) {
  for (auto const kind : {OptimizerKind::sgd, OptimizerKind::adamw, OptimizerKind::musgd}) {
    if (text == to_string(kind)) return kind;
  }
  base::fail(base::ExitCode::usage, "optimizer is '", text,
             "' (not a known one). Use sgd, adamw or musgd.");
}

char const* to_string(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::musgd:
      return "musgd";
  }
  return "?";
}

GroupAssignment group_parameters(std::vector<ParameterTraits> const& parameters,
                                 OptimizerKind optimizer) {
  GroupAssignment result{groups_of(optimizer), {}};
  for (auto const& parameter : parameters) {
    auto const kind = kind_of(parameter, optimizer);
    bool const is_split = optimizer == OptimizerKind::musgd;
    double const factor =
        is_split && is_in_class_branch(parameter.name) ? class_branch_lr_factor : 1.0;
    auto const group = std::find_if(
        result.groups.begin(), result.groups.end(),
        [&](ParameterGroup const& g) { return g.kind == kind && g.lr_factor == factor; });
    result.group_of.push_back(static_cast<int>(group - result.groups.begin()));
  }
  return result;
}

}  // namespace yolohpc::optim
