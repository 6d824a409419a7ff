#include "yolohpc/train/saver.hpp"

#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/train/run_folder.hpp"
#include "yolohpc/train/weights_file.hpp"

namespace yolohpc::train {
namespace {

using base::ExitCode;

std::string config_json(ConfigPairs const& pairs) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (auto const& [key, value] : pairs) object[key] = value;
  return object.dump();
}

ConfigPairs config_from(std::string const& text) {
  ConfigPairs pairs;
  auto const object = nlohmann::ordered_json::parse(text);
  for (auto const& [key, value] : object.items()) {
    pairs.emplace_back(key, value.get<std::string>());
  }
  return pairs;
}

}  // namespace

Saver::Saver(TrainSettings const& settings, data::ShardSet const& train_set,
             comm::Communicator& communicator, base::Log& log)
    : settings_(settings),
      train_set_(train_set),
      communicator_(communicator),
      log_(log),
      store_({.run_folder = settings.out, .keep = settings.keep}, communicator, log) {}

std::optional<checkpoint::LoadedCheckpoint> Saver::find(TrainSettings const& settings) {
  return find_checkpoint(settings, store_);
}

std::vector<ConfigChange> Saver::check_fits(checkpoint::LoadedCheckpoint const& found,
                                            TrainSettings const& settings) const {
  auto const& metadata = found.content.metadata;
  YOLOHPC_CHECK_AS(ExitCode::bad_data, metadata.contains("run") && metadata.contains("config"),
                   found.path.string(),
                   " holds weights but not the state of a run. Start from it with "
                   "--weights instead of --resume.");
  auto const changes = compare_configs(config_from(metadata.at("config")), settings.config);
  YOLOHPC_CHECK_AS(
      ExitCode::bad_data, metadata.at("data_digest") == train_set_.digest(),
      "the training data are not those of the checkpoint: digest ", train_set_.digest(), " in ",
      settings.data.string(), ", ", metadata.at("data_digest"),
      " in the checkpoint. Resume with the data it was made with, or start a new run with "
      "--weights.");
  return changes;
}

void Saver::checkpoint(TrainState& state, checkpoint::Quality quality) {
  state.settle();
  base::Safetensors content;
  if (communicator_.is_root()) {
    content = state.snapshot();
    content.metadata.merge(
        weights_metadata(state.network().spec(), train_set_.categories(), settings_.image_size));
    content.metadata["config"] = config_json(settings_.config);
    content.metadata["data_digest"] = train_set_.digest();
  }
  auto const& position = state.position;
  held_up_s_ += store_.save(content, {.epoch = position.epoch, .step = state.iteration()}, quality);
  report_failures(store_.take_outcomes());
}

base::Safetensors Saver::weights(TrainState& state) const {
  base::Safetensors content;
  if (!communicator_.is_root()) return content;
  content.tensors = state.averaged_weights();
  content.metadata =
      weights_metadata(state.network().spec(), train_set_.categories(), settings_.image_size);
  return content;
}

void Saver::best_weights(TrainState& state) {
  held_up_s_ += store_.write_weights(store_.best_weights(), weights(state));
}

void Saver::last_weights(TrainState& state) {
  held_up_s_ += store_.write_weights(store_.last_weights(), weights(state));
}

void Saver::finish() {
  report_failures(store_.finish());
}

void Saver::report_failures(std::vector<checkpoint::SaveOutcome> const& outcomes) {
  for (auto const& outcome : outcomes) {
    if (outcome.error.empty()) continue;
    log_.root(base::Level::warning, "a save failed, training goes on: ", outcome.error);
  }
}

}  // namespace yolohpc::train
