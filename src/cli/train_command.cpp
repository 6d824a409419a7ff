#include <nlohmann/json.hpp>

#include "yolohpc/base/build_info.hpp"
#include "yolohpc/base/clock.hpp"
#include "yolohpc/cli/commands.hpp"
#include "yolohpc/train/math_mode.hpp"
#include "yolohpc/train/stop.hpp"
#include "yolohpc/train/trainer.hpp"

namespace yolohpc::cli {
namespace {

using train::TrainSettings;

// A configuration file lists every setting, so a default in it says nothing about what someone
// wanted.
train::Chosen chosen(ParsedOptions const& options, char const* name) {
  double const value = options.get<double>(name);
  auto const* option = yolohpc_table().find_option("train", name);
  bool const is_default = value == std::stod(std::string(option->default_text));
  bool const is_given =
      options.source(name) == Source::config_file ? !is_default : options.was_set(name);
  return {.value = value, .is_given = is_given};
}

optim::LrScaling lr_scaling(std::string const& word) {
  if (word == "linear") return optim::LrScaling::linear;
  return word == "sqrt" ? optim::LrScaling::sqrt : optim::LrScaling::none;
}

train::ConfigPairs config_pairs(ParsedOptions const& options) {
  train::ConfigPairs pairs;
  auto const object = nlohmann::ordered_json::parse(options.to_json());
  for (auto const& [key, value] : object.items()) {
    pairs.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return pairs;
}

void fill_run(ParsedOptions const& options, TrainSettings& settings) {
  settings.out = options.get<std::string>("out");
  YOLOHPC_CHECK_AS(base::ExitCode::usage, !settings.out.empty(),
                   "--out is empty (an unset variable in a job script?). Name the run folder.");
  auto const resume = options.get<std::string>("resume");
  if (resume == "auto") {
    settings.resume = train::Resume::automatic;
  } else if (!resume.empty()) {
    settings.resume = train::Resume::from_file;
    settings.resume_file = resume;
  } else if (options.get<bool>("exist-ok")) {
    settings.resume = train::Resume::start_over;
  }
  settings.val_every = options.get<std::int64_t>("val-every");
  settings.save_every = options.get<std::int64_t>("save-every");
  settings.save_steps = options.get<std::int64_t>("save-steps");
  settings.keep = options.get<int>("keep");
  settings.max_steps = options.get<std::int64_t>("max-steps");
  settings.patience = options.get<std::int64_t>("patience");
  settings.stop_before_s = options.get<double>("stop-before");
  settings.walltime_end_s = train::walltime_end_s(options.get<std::string>("walltime"),
                                                  comm::launch_environment(), base::wall_clock_s());
  settings.log_samples = options.get<bool>("log-samples");
  settings.config = config_pairs(options);
  settings.config_text = options.to_config_text();
}

void fill_recipe(ParsedOptions const& options, TrainSettings& settings) {
  settings.epochs = options.get<std::int64_t>("epochs");
  settings.batch = options.get<std::int64_t>("batch");
  settings.accumulate = options.get<std::int64_t>("accumulate");
  settings.nominal_batch = options.get<std::int64_t>("nbs");
  settings.image_size = options.get<int>("imgsz");
  settings.optimizer = options.get<std::string>("optimizer");
  settings.lr0 = chosen(options, "lr0");
  settings.momentum = chosen(options, "momentum");
  settings.warmup_bias_lr = chosen(options, "warmup-bias-lr");
  settings.lrf = options.get<double>("lrf");
  settings.cosine = options.get<bool>("cos-lr");
  settings.weight_decay = options.get<double>("weight-decay");
  settings.warmup_epochs = options.get<double>("warmup-epochs");
  settings.warmup_momentum = options.get<double>("warmup-momentum");
  settings.lr_scaling = lr_scaling(options.get<std::string>("lr-scaling"));
  settings.lr_reference_batch = options.get<std::int64_t>("lr-reference-batch");
  settings.gains = {.box = options.get<double>("box"),
                    .cls = options.get<double>("cls"),
                    .dfl = options.get<double>("dfl")};
  settings.ema_decay = options.get<double>("ema-decay");
  settings.seed = static_cast<std::uint64_t>(options.get<std::int64_t>("seed"));
}

void fill_augmentation(ParsedOptions const& options, TrainSettings& settings) {
  auto& augment = settings.augment;
  augment.hsv_h = options.get<double>("hsv-h");
  augment.hsv_s = options.get<double>("hsv-s");
  augment.hsv_v = options.get<double>("hsv-v");
  augment.degrees = options.get<double>("degrees");
  augment.translate = options.get<double>("translate");
  augment.scale = options.get<double>("scale");
  augment.shear = options.get<double>("shear");
  augment.flipud = options.get<double>("flipud");
  augment.fliplr = options.get<double>("fliplr");
  augment.mosaic = options.get<double>("mosaic");
  augment.mixup = options.get<double>("mixup");
  settings.close_mosaic = options.get<std::int64_t>("close-mosaic");
}

TrainSettings make_settings(Session& session, ParsedOptions const& options) {
  TrainSettings settings;
  settings.data = options.get<std::string>("data");
  settings.val_data = options.get<std::string>("val-data");
  settings.train_split = options.get<std::string>("train-split");
  settings.val_split = options.get<std::string>("val-split");
  settings.model = options.get<std::string>("model");
  settings.weights = options.get<std::string>("weights");
  settings.fail_on_bad_sample = options.get<std::string>("on-bad-sample") == "fail";
  settings.workers = session.workers();
  constexpr double mib = 1024.0 * 1024.0;
  settings.bucket_bytes = static_cast<std::int64_t>(options.get<double>("bucket-mib") * mib);
  settings.overlap = options.get<bool>("overlap") ? parallel::Overlap::on : parallel::Overlap::off;
  settings.channels_last = options.get<bool>("channels-last");
  settings.device = session.device();
  fill_recipe(options, settings);
  fill_augmentation(options, settings);
  fill_run(options, settings);
  auto const& build = base::build_info();
  settings.build = base::join("yolohpc ", build.version, " (", build.git_revision, "), LibTorch ",
                              build.libtorch, ", ", session.world().size(), " rank(s) x ",
                              session.threads(), " thread(s) on ", session.device().str());
  return settings;
}

}  // namespace

base::ExitCode run_train(Session& session, ParsedOptions& options) {
  train::set_math_mode(
      {.tf32 = options.get<bool>("tf32"), .deterministic = options.get<bool>("deterministic")});
  auto const settings = make_settings(session, options);
  train::plan_batch(settings.batch, session.world().size(), settings.accumulate);
  auto const ranks = session.rank_table();
  session.log().root(base::Level::info, settings.build, "\n", ranks);
  train::Trainer trainer(settings, {session.host_comm(), session.tensor_comm()}, session.log());
  auto const outcome = trainer.run();
  auto const json = options.get<std::string>("json");
  if (!json.empty() && session.world().is_root()) write_json_result(json, outcome.json);
  return outcome.code;
}

}  // namespace yolohpc::cli
