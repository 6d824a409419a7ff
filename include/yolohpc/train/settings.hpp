// Everything that a training run is told, and what follows from it before any data is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/data/augment.hpp"
#include "yolohpc/loss/criterion.hpp"
#include "yolohpc/optim/schedule.hpp"
#include "yolohpc/parallel/reducer.hpp"

namespace yolohpc::train {

/// What becomes of a checkpoint or run folder that is there already.
enum class Resume {
  never,       ///< a used run folder is refused
  automatic,   ///< go on from the newest good checkpoint in the folder, else start afresh
  from_file,   ///< go on from `resume_file`
  start_over,  ///< use the folder again; its checkpoints are set aside
};

/// A value that a user may have given or left to `auto`.
struct Chosen {
  double value = 0;
  bool is_given = false;
};

/// Keys and values of the resolved configuration, for the run folder and the checkpoint.
using ConfigPairs = std::vector<std::pair<std::string, std::string>>;

struct TrainSettings {
  std::filesystem::path data;
  std::filesystem::path val_data;  ///< empty: the same folder as `data`
  std::string train_split = "train";
  std::string val_split = "val";
  std::string model = "yolo11n";
  std::filesystem::path weights;  ///< state dict to start from; empty: random
  std::filesystem::path out;
  Resume resume = Resume::never;
  std::filesystem::path resume_file;

  std::int64_t epochs = 100;
  std::int64_t batch = 16;      ///< global
  std::int64_t accumulate = 1;  ///< micro-batches of a rank's share
  std::int64_t nominal_batch = 64;
  int image_size = 640;

  std::string optimizer = "auto";  ///< auto, sgd, adamw, musgd
  Chosen lr0{0.01, false};
  Chosen momentum{0.937, false};
  Chosen warmup_bias_lr{0.1, false};
  double lrf = 0.01;
  bool cosine = false;
  double weight_decay = 0.0005;
  double warmup_epochs = 3;
  double warmup_momentum = 0.8;
  optim::LrScaling lr_scaling = optim::LrScaling::none;
  std::int64_t lr_reference_batch = 64;

  loss::LossGains gains;
  data::AugmentSettings augment;
  std::int64_t close_mosaic = 10;  ///< last epochs without mosaic and mixup
  bool fail_on_bad_sample = false;
  int workers = 1;  ///< decode threads of this rank; 0 decodes in the training thread

  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  parallel::Overlap overlap = parallel::Overlap::on;
  bool channels_last = true;
  at::Device device = at::kCPU;

  std::uint64_t seed = 0;
  double ema_decay = 0.9999;
  std::int64_t patience = 100;  ///< epochs without a better result; 0: never stops early
  std::int64_t val_every = 1;   ///< epochs
  std::int64_t save_every = 1;  ///< epochs
  std::int64_t save_steps = 0;  ///< optimiser updates; 0: only at the end of epochs
  int keep = 2;
  std::int64_t max_steps = 0;  ///< optimiser updates after which this process ends; 0: no limit
  std::optional<double> walltime_end_s;  ///< base::wall_clock_s() at which the job is killed
  double stop_before_s = 120;
  std::string on_checkpoint;  ///< shell command, run by rank 0
  bool log_samples = false;

  ConfigPairs config;       ///< of the whole command, for comparison on resume
  std::string config_text;  ///< written to config.cfg
  std::string build;        ///< one line about program and host, for the report
};

/// The images of one iteration, cut up.
struct BatchPlan {
  std::int64_t global = 0;
  std::int64_t per_rank = 0;
  std::int64_t micro_batches = 1;
  std::int64_t per_micro_batch = 0;
};

/// Cuts the global batch over ranks and micro-batches.
/// \throws Error (usage)  it can't be cut evenly: names batch, ranks, micro-batches and the nearest
///                        batches that can
BatchPlan plan_batch(std::int64_t batch, int ranks, std::int64_t accumulate);

/// What the run is about to do, with everything that was `auto` decided.
struct TrainPlan {
  BatchPlan batch;
  std::int64_t steps_per_epoch = 0;  ///< iterations: one global batch each
  optim::ScheduleSettings schedule;
  std::vector<std::string> notes;  ///< for people: what was decided and why
};

/// \param images   in the training split
/// \param classes  in the data set
/// \throws Error (usage)  `--optimizer auto` together with a learning rate or momentum that it
/// would
///                        ignore; fewer images than the global batch
TrainPlan make_plan(TrainSettings const& settings, int ranks, std::int64_t images,
                    std::int64_t classes);

/// Settings that differ between a checkpoint and this start.
struct ConfigChange {
  std::string key;
  std::string before;
  std::string now;
};

/// Compares configurations on a resume.
/// \return  differences that are allowed (threads, folders, intervals, more epochs, ...), to be
/// shown \throws Error (usage)  a difference that would make the run another one: names every such
/// key with
///                        both values
std::vector<ConfigChange> compare_configs(ConfigPairs const& before, ConfigPairs const& now);

}  // namespace yolohpc::train
