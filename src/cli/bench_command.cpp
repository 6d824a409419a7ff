#include <cstdio>

#include <nlohmann/json.hpp>

#include "yolohpc/cli/commands.hpp"
#include "yolohpc/train/bench_step.hpp"
#include "yolohpc/train/math_mode.hpp"

namespace yolohpc::cli {
namespace {

using Json = nlohmann::ordered_json;

train::BenchStepSettings step_settings(Session& session, ParsedOptions const& options) {
  train::BenchStepSettings settings;
  settings.train.model = options.get<std::string>("model");
  settings.train.batch = options.get<std::int64_t>("batch");
  settings.train.accumulate = options.get<std::int64_t>("accumulate");
  settings.train.image_size = options.get<int>("imgsz");
  settings.train.optimizer = options.get<std::string>("optimizer");
  settings.train.seed = static_cast<std::uint64_t>(options.get<std::int64_t>("seed"));
  settings.train.channels_last = options.get<bool>("channels-last");
  settings.train.overlap =
      options.get<bool>("overlap") ? parallel::Overlap::on : parallel::Overlap::off;
  constexpr double mib = 1024.0 * 1024.0;
  settings.train.bucket_bytes = static_cast<std::int64_t>(options.get<double>("bucket-mib") * mib);
  settings.train.device = session.device();
  settings.classes = options.get<std::int64_t>("classes");
  settings.boxes_per_image = options.get<std::int64_t>("boxes");
  settings.steps = options.get<std::int64_t>("steps");
  settings.warmup_steps = options.get<std::int64_t>("warmup-steps");
  settings.repeats = options.get<std::int64_t>("repeats");
  return settings;
}

Json step_json(train::BenchStepSettings const& settings, train::BenchStepResult const& result) {
  return {{"bench", "step"},
          {"model", settings.train.model},
          {"image_size_px", settings.train.image_size},
          {"batch", result.batch},
          {"images_per_s", result.median_images_per_s},
          {"bare_step_images_per_s", result.median_bare_images_per_s},
          {"ratio_to_bare_step", result.median_ratio},
          {"images_per_s_by_repeat", result.images_per_s},
          {"bare_step_images_per_s_by_repeat", result.bare_images_per_s},
          {"forward_share", result.forward_share},
          {"backward_share", result.backward_share},
          {"comm_wait_share", result.comm_wait_share},
          {"optimizer_share", result.optimizer_share},
          {"peak_memory_mib", result.peak_memory_mib}};
}

}  // namespace

base::ExitCode run_bench(Session& session, ParsedOptions& options) {
  auto const& what = options.positionals().at(0);
  YOLOHPC_CHECK_AS(base::ExitCode::usage, what == "step", "`yolohpc bench ", what,
                   "` is planned and not in this build; `bench step` is.");
  train::set_math_mode({.tf32 = options.get<bool>("tf32"), .deterministic = false});
  auto const settings = step_settings(session, options);
  auto const ranks = session.rank_table();
  auto const result = train::bench_step(settings, session.tensor_comm());
  if (!session.world().is_root()) return base::ExitCode::done;
  auto const json = options.get<std::string>("json");
  std::FILE* const out = text_stream(json);
  std::fprintf(out, "%s, %d px, global batch %lld, %d rank(s) x %d thread(s)\n",
               settings.train.model.c_str(), settings.train.image_size,
               static_cast<long long>(result.batch), session.world().size(), session.threads());
  std::fprintf(
      out,
      "full step  %8.2f images/s (median of %zu)\nbare step  %8.2f images/s\nratio      %8.3f\n",
      result.median_images_per_s, result.images_per_s.size(), result.median_bare_images_per_s,
      result.median_ratio);
  if (json.empty()) return base::ExitCode::done;
  auto object = step_json(settings, result);
  object["ranks"] = session.world().size();
  object["threads_per_rank"] = session.threads();
  object["hosts"] = session.world().hosts();
  object["rank_table"] = ranks;
  object["build"] = Json::parse(version_json(build_record(runtime_record())));
  write_json_result(json, object.dump(2));
  return base::ExitCode::done;
}

}  // namespace yolohpc::cli
