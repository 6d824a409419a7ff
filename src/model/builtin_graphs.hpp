// The graphs that are compiled in, as YAML text.
#pragma once

#include <string>
#include <vector>

namespace yolohpc::model {

struct BuiltinGraph {
  std::string family;                    ///< "yolo11"; the name of a graph is family + scale
  std::vector<std::string> scale_names;  ///< "n", "s", ...
  std::string text;
};

std::vector<BuiltinGraph> const& builtin_graphs();

}  // namespace yolohpc::model
