// Weights files: the state dict of a network with what is needed to use it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "yolohpc/base/safetensors.hpp"
#include "yolohpc/data/shard_set.hpp"
#include "yolohpc/model/graph_spec.hpp"

namespace yolohpc::train {

/// What the names of the averaged network begin with in a checkpoint.
inline constexpr char const* averaged_prefix = "ema.";

/// The tensors whose names begin with `prefix`, without it; they share memory with `tensors`.
base::NamedTensors tensors_under(base::NamedTensors const& tensors, std::string const& prefix);

/// A network to be used, from a weights file or a checkpoint.
struct WeightsFile {
  base::NamedTensors tensors;  ///< by state-dict name; of a checkpoint the averaged ones
  std::vector<data::Category> categories;  ///< in class order; empty when the file does not say
  std::string model;                       ///< name or file of the graph; empty when unknown
  std::string graph_text;                  ///< YAML text of the graph; empty when unknown
  std::string graph_scale;
  int image_size = 0;  ///< pixels it was trained at; 0 when unknown
};

/// \throws Error (bad data)  not a safetensors file, or one without a single tensor
WeightsFile read_weights(std::filesystem::path const& path);

/// The graph that the file carries.
/// \param model  used instead when the file carries none: a name or a YAML file
/// \throws Error (usage)  neither is there
model::GraphSpec graph_of(WeightsFile const& weights, std::string const& model);

/// The metadata that read_weights understands, for a file to be written.
std::map<std::string, std::string> weights_metadata(model::GraphSpec const& graph,
                                                    std::vector<data::Category> const& categories,
                                                    int image_size);

}  // namespace yolohpc::train
