#include <algorithm>
#include <cstdio>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/cli/commands.hpp"
#include "yolohpc/eval/inference.hpp"
#include "yolohpc/eval/summary.hpp"
#include "yolohpc/train/weights_file.hpp"

namespace yolohpc::cli {
namespace {

using base::ExitCode;

model::Network load_network(train::WeightsFile const& weights, std::int64_t classes,
                            std::string const& path) {
  YOLOHPC_CHECK_AS(
      ExitCode::bad_data,
      weights.categories.empty() || static_cast<std::int64_t>(weights.categories.size()) == classes,
      path, " knows ", weights.categories.size(), " classes, the data set has ", classes,
      ". Validate on data with the same categories.");
  model::Network network(train::graph_of(weights, ""), model::ClassCount{classes});
  network.load_state(weights.tensors, model::LoadMode::strict);
  return network;
}

eval::InferenceSettings inference_settings(Session& session, ParsedOptions const& options) {
  eval::InferenceSettings settings;
  settings.nms.confidence = static_cast<float>(options.get<double>("conf"));
  settings.nms.iou = static_cast<float>(options.get<double>("iou"));
  settings.nms.max_detections = options.get<int>("max-det");
  auto const batch = options.get<std::int64_t>("batch");
  settings.loader.batch = std::max<std::int64_t>(batch / session.world().size(), 1);
  settings.loader.image_size = options.get<int>("imgsz");
  settings.loader.framing =
      options.get<bool>("rect") ? data::Framing::rectangular : data::Framing::square;
  settings.loader.pipeline.workers = session.workers();
  settings.keeps_predictions = options.has("predictions");
  return settings;
}

void print_metrics(eval::DetectionMetrics const& metrics, std::FILE* out) {
  if (!metrics.is_defined()) {
    std::fprintf(out, "The split has no objects: AP is undefined.\n");
    return;
  }
  std::fprintf(out,
               "precision %.5f  recall %.5f  mAP50 %.5f  mAP50-95 %.5f  (as in the training log)\n",
               metrics.mean_precision, metrics.mean_recall, metrics.map50, metrics.map50_95);
}

}  // namespace

ExitCode run_val(Session& session, ParsedOptions& options) {
  base::Stopwatch clock;
  auto const path = options.get<std::string>("weights");
  auto const weights = train::read_weights(path);
  data::ShardSet const set(options.get<std::string>("data"), options.get<std::string>("split"));
  auto const source = data::make_shard_source(set);
  auto network = load_network(weights, static_cast<std::int64_t>(set.categories().size()), path);
  network.to(session.device());
  network.to_channels_last();
  network.set_training(false);
  auto const result = eval::run_inference({network, set, *source, session.host_comm()},
                                          inference_settings(session, options));
  for (auto const& bad : result.bad_records) {
    session.log().this_rank(
        base::Level::warning,
        "an image could not be read and counts as one without detections: ", bad.reason);
  }
  if (!session.world().is_root()) return ExitCode::done;
  auto const json = options.get<std::string>("json");
  std::FILE* const out = text_stream(json);
  std::fprintf(out, "%s", eval::summary_text(result.coco).c_str());
  print_metrics(result.metrics, out);
  if (options.has("predictions")) {
    eval::write_detections(options.get<std::string>("predictions"), result.predictions);
  }
  if (!json.empty()) {
    std::vector<eval::CocoCategory> categories;
    for (auto const& category : set.categories())
      categories.push_back({category.id, category.name});
    write_json_result(json, eval::summary_json(result.coco, categories, clock.elapsed_s()));
  }
  return ExitCode::done;
}

}  // namespace yolohpc::cli
