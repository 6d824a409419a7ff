#include <cstdio>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/cli/commands.hpp"
#include "yolohpc/eval/coco.hpp"
#include "yolohpc/eval/coco_files.hpp"
#include "yolohpc/eval/summary.hpp"

namespace yolohpc::cli {

base::ExitCode run_eval(ParsedOptions& options) {
  base::Stopwatch clock;
  auto const annotations = eval::read_annotations(options.get<std::string>("gt"));
  for (auto const& warning : annotations.warnings) {
    base::Log().root(base::Level::warning, warning);
  }
  auto const detections =
      eval::read_detections(options.get<std::string>("dt"), annotations.dataset);
  auto const results = eval::evaluate(annotations.dataset, detections);
  auto const json = options.get<std::string>("json");
  std::fprintf(text_stream(json), "%s", eval::summary_text(results).c_str());
  if (!json.empty()) {
    write_json_result(
        json, eval::summary_json(results, annotations.dataset.categories, clock.elapsed_s()));
  }
  return base::ExitCode::done;
}

}  // namespace yolohpc::cli
