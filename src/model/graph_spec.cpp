#include "yolohpc/model/graph_spec.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include <yaml-cpp/yaml.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "builtin_graphs.hpp"

namespace yolohpc::model {
namespace {

using base::ExitCode;

/// Where parsing stands, for messages.
struct Source {
  std::string origin;

  template <typename... Parts>
  [[noreturn]] void fail(YAML::Node const& at, Parts const&... parts) const {
    base::fail(ExitCode::usage, origin, " line ", at.Mark().line + 1, ": ", parts...);
  }
};

using Arguments = std::map<std::string, double>;

struct Scale {
  double depth = 1;
  double width = 1;
  double max_channels = 1e9;
  std::map<std::string, Arguments> force;  ///< by block
};

/// A number, or true and false as 1 and 0.
double number(Source const& source, YAML::Node const& node, std::string const& key) {
  if (node.IsScalar()) {
    if (double value = 0; YAML::convert<double>::decode(node, value)) return value;
    if (bool value = false; YAML::convert<bool>::decode(node, value)) return value ? 1 : 0;
  }
  source.fail(node, key, " is ", node.IsScalar() ? "'" + node.Scalar() + "'" : "not a single value",
              ". Give a number, true or false.");
}

std::int64_t whole_number(Source const& source, YAML::Node const& node, std::string const& key) {
  double const value = number(source, node, key);
  if (value != std::floor(value) || std::abs(value) > 1e9) {
    source.fail(node, key, " is ", node.Scalar(), ". Give a whole number.");
  }
  return static_cast<std::int64_t>(value);
}

std::int64_t positive(Source const& source, YAML::Node const& node, std::string const& key) {
  auto const value = whole_number(source, node, key);
  if (value < 1) source.fail(node, key, " is ", value, ". Give a whole number above 0.");
  return value;
}

Scale parse_scale(Source const& source, YAML::Node const& node) {
  Scale scale;
  if (!node.IsMap()) source.fail(node, "a scale has to be {depth: ..., width: ...}.");
  for (auto const& item : node) {
    auto const key = item.first.Scalar();
    if (key == "depth") {
      scale.depth = number(source, item.second, key);
    } else if (key == "width") {
      scale.width = number(source, item.second, key);
    } else if (key == "max_channels") {
      scale.max_channels = number(source, item.second, key);
    } else if (key == "force") {
      for (auto const& block : item.second) {
        for (auto const& argument : block.second) {
          scale.force[block.first.Scalar()][argument.first.Scalar()] =
              number(source, argument.second, argument.first.Scalar());
        }
      }
    } else {
      source.fail(item.first, "a scale has no '", key,
                  "'. Known: depth, width, max_channels, force.");
    }
  }
  return scale;
}

std::string key_list(YAML::Node const& map) {
  std::string list;
  for (auto const& item : map) list += (list.empty() ? "" : ", ") + item.first.Scalar();
  return list;
}

/// The scale called `wanted`; when none is wanted, the only one, or no scaling at all.
std::pair<std::string, Scale> choose_scale(Source const& source, YAML::Node const& root,
                                           std::string wanted) {
  auto const scales = root["scales"];
  if (!scales) {
    YOLOHPC_CHECK_AS(ExitCode::usage, wanted.empty(), source.origin, " has no scales, '", wanted,
                     "' was asked for. Leave it out.");
    return {"", Scale{}};
  }
  if (!scales.IsMap() || scales.size() == 0) {
    source.fail(scales, "scales has to be a list of NAME: {depth: ..., width: ...}.");
  }
  if (wanted.empty() && scales.size() == 1) wanted = scales.begin()->first.Scalar();
  auto const node = wanted.empty() ? YAML::Node(YAML::NodeType::Undefined) : scales[wanted];
  YOLOHPC_CHECK_AS(ExitCode::usage, node, source.origin,
                   wanted.empty() ? " has several scales" : " has no scale '" + wanted + "'",
                   ". Choose one as FILE:SCALE from: ", key_list(scales), ".");
  return {wanted, parse_scale(source, node)};
}

/// 8 ceil(min(nominal, max) width / 8).
std::int64_t scaled_width(std::int64_t nominal, Scale const& scale) {
  constexpr double granule = 8;
  double const channels = std::min(static_cast<double>(nominal), scale.max_channels) * scale.width;
  return static_cast<std::int64_t>(granule * std::ceil(channels / granule));
}

std::int64_t scaled_repeats(std::int64_t nominal, Scale const& scale) {
  if (nominal == 1) return 1;
  auto const repeats = std::nearbyint(static_cast<double>(nominal) * scale.depth);
  return std::max<std::int64_t>(static_cast<std::int64_t>(repeats), 1);
}

/// Layer numbers from a number or a list; negative ones count back from layer `index`.
std::vector<int> parse_from(Source const& source, YAML::Node const& node, int index) {
  std::vector<YAML::Node> items;
  if (node.IsSequence()) {
    for (auto const& item : node) items.push_back(item);
  } else {
    items.push_back(node);
  }
  if (items.empty()) source.fail(node, "from is empty. Name at least one layer.");
  std::vector<int> from;
  for (auto const& item : items) {
    auto const given = whole_number(source, item, "from");
    auto const layer = given < 0 ? index + given : given;
    bool const is_image = index == 0 && given == -1;
    if (!is_image && (layer < 0 || layer >= index)) {
      source.fail(item, "layer ", index, " reads from ", given,
                  ", which is not a layer before it. Use 0 to ", index - 1,
                  " or a negative number that counts back.");
    }
    from.push_back(static_cast<int>(is_image ? LayerSpec::image : layer));
  }
  return from;
}

LayerSpec parse_layer(Source const& source, YAML::Node const& node, int index, Scale const& scale) {
  if (!node.IsMap() || !node["block"] || !node["block"].IsScalar()) {
    source.fail(node, "layer ", index, " has to be {block: NAME, ...}.");
  }
  LayerSpec layer;
  layer.block = node["block"].Scalar();
  layer.line = node.Mark().line + 1;
  layer.from = {index == 0 ? LayerSpec::image : index - 1};
  for (auto const& item : node) {
    auto const key = item.first.Scalar();
    if (key == "block") continue;
    if (key == "from") {
      layer.from = parse_from(source, item.second, index);
    } else if (key == "out") {
      layer.out_channels = scaled_width(positive(source, item.second, key), scale);
    } else if (key == "repeats") {
      layer.repeats = scaled_repeats(positive(source, item.second, key), scale);
    } else {
      layer.arguments[key] = number(source, item.second, key);
    }
  }
  if (auto const forced = scale.force.find(layer.block); forced != scale.force.end()) {
    for (auto const& [key, value] : forced->second) layer.arguments[key] = value;
  }
  return layer;
}

YAML::Node parse_yaml(std::string const& text, std::string const& origin) {
  try {
    auto root = YAML::Load(text);
    YOLOHPC_CHECK_AS(ExitCode::usage, root.IsMap() && root["layers"] && root["layers"].IsSequence(),
                     origin, " has no list 'layers'. A graph file needs one entry per layer.");
    return root;
  } catch (YAML::ParserException const& error) {
    base::fail(ExitCode::usage, origin, " line ", error.mark.line + 1, ": ", error.msg,
               ". The file is not YAML there.");
  }
}

/// yolo11n -> its family and "n".
std::optional<std::pair<BuiltinGraph, std::string>> find_builtin(std::string const& name) {
  for (auto const& graph : builtin_graphs()) {
    for (auto const& scale : graph.scale_names) {
      if (name == graph.family + scale) return std::pair{graph, scale};
    }
  }
  return std::nullopt;
}

}  // namespace

double LayerSpec::argument(std::string const& name, double otherwise) const {
  auto const found = arguments.find(name);
  return found == arguments.end() ? otherwise : found->second;
}

GraphSpec parse_graph(std::string const& text, std::string const& scale,
                      std::string const& origin) {
  Source const source{origin};
  auto const root = parse_yaml(text, origin);
  for (auto const& item : root) {
    auto const key = item.first.Scalar();
    if (key != "scales" && key != "layers") {
      source.fail(item.first, "unknown key '", key, "'. Known: scales, layers.");
    }
  }
  auto const [scale_name, chosen] = choose_scale(source, root, scale);
  GraphSpec spec{.name = origin, .origin = origin, .text = text, .scale = scale_name, .layers = {}};
  int index = 0;
  for (auto const& node : root["layers"]) {
    spec.layers.push_back(parse_layer(source, node, index++, chosen));
  }
  YOLOHPC_CHECK_AS(ExitCode::usage, index > 0, origin, " has no layers.");
  return spec;
}

GraphSpec load_graph(std::string const& name) {
  if (auto const builtin = find_builtin(name)) {
    auto const& [graph, scale] = *builtin;
    auto spec = parse_graph(graph.text, scale, "built-in " + graph.family);
    spec.name = name;
    return spec;
  }
  std::string path = name;
  std::string scale;
  if (auto const colon = name.rfind(':'); !std::filesystem::exists(path) && colon != name.npos) {
    path = name.substr(0, colon);
    scale = name.substr(colon + 1);
  }
  if (!std::filesystem::is_regular_file(path)) {
    std::string known;
    for (auto const& each : builtin_graph_names()) known += each + ", ";
    base::fail(ExitCode::usage, "model '", name,
               "' is neither a known name nor a file. Known: ", known,
               "or the path of a YAML graph.");
  }
  auto spec = parse_graph(base::read_text_file(path), scale, path);
  spec.name = name;
  return spec;
}

std::vector<std::string> builtin_graph_names() {
  std::vector<std::string> names;
  for (auto const& graph : builtin_graphs()) {
    for (auto const& scale : graph.scale_names) names.push_back(graph.family + scale);
  }
  return names;
}

}  // namespace yolohpc::model
