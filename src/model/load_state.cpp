#include "load_state.hpp"

#include <unordered_map>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::model {
namespace {

constexpr std::size_t listed_problems = 10;

using Index = std::unordered_map<std::string, at::Tensor>;

/// Why `entry` cannot be loaded; empty when it can.
std::string obstacle(StateEntry const& entry, Index const& source) {
  auto const found = source.find(entry.name);
  if (found == source.end()) return "missing";
  if (found->second.sizes() == entry.tensor.sizes()) return "";
  return base::join("shape ", found->second.sizes(), " in the file, ", entry.tensor.sizes(),
                    " in the network");
}

void refuse_problems(LoadReport const& report) {
  std::vector<std::string> problems;
  for (auto const& each : report.skipped) problems.push_back(each.name + ": " + each.reason);
  for (auto const& name : report.unused) problems.push_back(name + ": not in the network");
  if (problems.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < std::min(problems.size(), listed_problems); ++i) {
    list += "\n  " + problems[i];
  }
  if (problems.size() > listed_problems) {
    list += base::join("\n  and ", problems.size() - listed_problems, " more");
  }
  base::fail(base::ExitCode::bad_data, "weights do not fit the network, ", problems.size(),
             " entries differ. Use the model and class count they were made with.", list);
}

}  // namespace

LoadReport load_entries(std::vector<StateEntry> const& entries, base::NamedTensors const& source,
                        LoadMode mode) {
  Index index;
  for (auto const& each : source) index.emplace(each.name, each.tensor);
  LoadReport report;
  Index unused = index;
  for (auto const& entry : entries) {
    unused.erase(entry.name);
    if (auto const reason = obstacle(entry, index); !reason.empty()) {
      report.skipped.push_back({entry.name, reason});
    } else {
      report.loaded.push_back(entry.name);
    }
  }
  for (auto const& each : source) {
    if (unused.count(each.name) != 0) report.unused.push_back(each.name);
  }
  if (mode == LoadMode::strict) refuse_problems(report);
  at::NoGradGuard const no_grad;
  for (auto const& entry : entries) {
    if (obstacle(entry, index).empty()) at::Tensor(entry.tensor).copy_(index.at(entry.name));
  }
  return report;
}

}  // namespace yolohpc::model
