#include "yolohpc/train/weights_file.hpp"

#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"

namespace yolohpc::train {
namespace {

std::string value_or_empty(std::map<std::string, std::string> const& values, char const* key) {
  auto const found = values.find(key);
  return found == values.end() ? std::string() : found->second;
}

}  // namespace

base::NamedTensors tensors_under(base::NamedTensors const& tensors, std::string const& prefix) {
  base::NamedTensors found;
  for (auto const& entry : tensors) {
    if (entry.name.starts_with(prefix)) {
      found.push_back({entry.name.substr(prefix.size()), entry.tensor});
    }
  }
  return found;
}

WeightsFile read_weights(std::filesystem::path const& path) {
  auto const content = base::read_safetensors(path.string());
  WeightsFile weights;
  weights.tensors = tensors_under(content.tensors, averaged_prefix);
  if (weights.tensors.empty()) weights.tensors = content.tensors;
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, !weights.tensors.empty(), path.string(),
                   " holds no tensor.");
  weights.model = value_or_empty(content.metadata, "model");
  weights.graph_text = value_or_empty(content.metadata, "graph");
  weights.graph_scale = value_or_empty(content.metadata, "graph_scale");
  auto const size = value_or_empty(content.metadata, "image_size");
  auto const categories = value_or_empty(content.metadata, "categories");
  try {
    weights.image_size = size.empty() ? 0 : std::stoi(size);
    if (!categories.empty()) {
      for (auto const& entry : nlohmann::json::parse(categories)) {
        weights.categories.push_back({entry.at("id"), entry.at("name")});
      }
    }
  } catch (std::exception const& error) {
    base::fail(base::ExitCode::bad_data, path.string(), ": the metadata are damaged (",
               error.what(), ").");
  }
  return weights;
}

model::GraphSpec graph_of(WeightsFile const& weights, std::string const& model) {
  if (!weights.graph_text.empty()) {
    auto spec = model::parse_graph(weights.graph_text, weights.graph_scale, weights.model);
    spec.name = weights.model;
    return spec;
  }
  YOLOHPC_CHECK_AS(base::ExitCode::usage, !model.empty(),
                   "the weights file does not say which model it is for. Name it with --model.");
  return model::load_graph(model);
}

std::map<std::string, std::string> weights_metadata(model::GraphSpec const& graph,
                                                    std::vector<data::Category> const& categories,
                                                    int image_size) {
  nlohmann::json list = nlohmann::json::array();
  for (auto const& category : categories) {
    list.push_back({{"id", category.id}, {"name", category.name}});
  }
  return {{"format", "pt"},  // what other readers of safetensors look for
          {"model", graph.name},
          {"graph", graph.text},
          {"graph_scale", graph.scale},
          {"image_size", std::to_string(image_size)},
          {"categories", list.dump()}};
}

}  // namespace yolohpc::train
