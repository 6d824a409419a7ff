// The graph of a detector as data: one row per layer, read from YAML.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace yolohpc::model {

/// One layer. Widths and repeats are final: the scaling rules have been applied.
struct LayerSpec {
  /// `from` of a layer that reads the network input.
  static constexpr int image = -1;

  std::string block;              ///< name in the block registry: "Conv", "C3k2", "Detect", ...
  std::vector<int> from;          ///< numbers of the producing layers, never relative
  std::int64_t out_channels = 0;  ///< 0: the block decides (Upsample, Concat, Detect)
  std::int64_t repeats = 1;
  std::map<std::string, double>
      arguments;  ///< by the names of the YAML file; false and true are 0 and 1
  int line = 0;   ///< where it stands in the file, for messages

  /// The argument `name`, or `otherwise` when the file does not give it.
  double argument(std::string const& name, double otherwise) const;
};

/// A graph at one scale. The last layer is the head.
struct GraphSpec {
  std::string name;    ///< "yolo11n", or the path of the file
  std::string origin;  ///< what messages call the source: a path or "built-in yolo11"
  std::string text;    ///< the YAML text it was read from, to be kept with a run
  std::string scale;   ///< "n", ..., empty when the file has no scales
  std::vector<LayerSpec> layers;
};

/// The graph called `name`: yolo11n, yolo11s, yolo11m, yolo11l, yolo11x, or a YAML file.
///
/// A file with scales needs one: `FILE:SCALE` picks it, a file with a single scale needs no choice.
/// \throws Error (usage)  no such name or file (lists the known names); the file is not a graph:
/// file, line,
///                        what is wrong
GraphSpec load_graph(std::string const& name);

/// Parses YAML text. \param scale  one of the file's scales; empty when it has none or a single
/// one.
///
///     scales:                       # optional
///       n: {depth: 0.5, width: 0.25, max_channels: 1024}
///       m: {depth: 0.5, width: 1.0, max_channels: 512, force: {C3k2: {c3k: true}}}
///     layers:                       # from: -1 is the layer before, other numbers name a layer
///       - {block: Conv, out: 64, kernel: 3, stride: 2}
///       - {block: Concat, from: [-1, 6]}
///
/// out becomes 8 ceil(min(out, max_channels) width / 8); repeats above 1 become max(round(repeats
/// depth), 1). Source of the rules: spec/model.md, section 1. \throws Error (usage)  as above
GraphSpec parse_graph(std::string const& text, std::string const& scale, std::string const& origin);

/// The names `load_graph` knows without a file.
std::vector<std::string> builtin_graph_names();

}  // namespace yolohpc::model
