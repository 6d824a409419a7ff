#include "table_rows.hpp"

namespace yolohpc::cli {
namespace {

Option on_off(std::string_view name, std::string_view value, std::string_view help,
              std::string_view group, std::vector<std::string_view> commands) {
  return {.name = name,
          .kind = Kind::on_off,
          .default_text = value,
          .help = help,
          .group = group,
          .commands = std::move(commands)};
}

Option planned(Option option) {
  option.is_implemented = false;
  return option;
}

std::vector<Option> engine_options() {
  return {
      {.name = "amp",
       .kind = Kind::choice,
       .default_text = "auto",
       .help = "mixed precision; auto: off on CPU, bf16 on GPU",
       .group = engine_group,
       .commands = {"train", "bench"},
       .words = {"auto", "off", "bf16", "fp16"},
       .is_implemented = false},
      on_off("tf32", "on", "TensorFloat-32 in float32 convolutions (GPU)", engine_group,
             {"train", "bench"}),
      on_off("channels-last", "on", "store images and weights as NHWC", engine_group,
             {"train", "bench"}),
      {.name = "cuda-graph",
       .kind = Kind::choice,
       .default_text = "auto",
       .help = "replay the step as one CUDA graph",
       .group = engine_group,
       .commands = {"train", "bench"},
       .words = {"auto", "on", "off"},
       .is_implemented = false},
      planned(on_off("checkpoint-activations", "off",
                     "compute activations again in the backward pass, to save memory", engine_group,
                     {"train", "bench"})),
      {.name = "zero",
       .kind = Kind::integer,
       .default_text = "0",
       .help = "stage of state sharding: 1 optimizer state, 2 also gradients",
       .group = engine_group,
       .commands = {"train", "bench"},
       .minimum = 0,
       .maximum = 2,
       .is_implemented = false},
      planned(on_off("sync-bn", "off", "batch statistics over all ranks", engine_group,
                     {"train", "bench"})),
      {.name = "bucket-mib",
       .kind = Kind::number,
       .default_text = "25",
       .unit = "MiB",
       .help = "gradients that are reduced in one message",
       .group = engine_group,
       .commands = {"train", "bench"},
       .minimum = 0,
       .maximum = 4096,
       .is_open_below = true},
      on_off("overlap", "on", "reduce gradients while the backward pass computes", engine_group,
             {"train", "bench"}),
      {.name = "seed",
       .kind = Kind::integer,
       .default_text = "0",
       .help = "of all random numbers",
       .group = engine_group,
       .commands = {"train", "bench"},
       .minimum = 0},
      on_off("deterministic", "off", "same bits in every run, also on a GPU; slower there",
             engine_group, {"train"}),
  };
}

std::vector<Option> rank_options() {
  return {
      {.name = "device",
       .kind = Kind::choice,
       .default_text = "auto",
       .help = "auto: the GPU when there is one",
       .group = machine_group,
       .commands = {"train", "val", "predict", "bench", "info"},
       .words = {"auto", "cpu", "cuda"}},
      {.name = "comm",
       .kind = Kind::choice,
       .default_text = "auto",
       .help = "how gradients travel; auto: nccl between GPUs, mpi otherwise",
       .group = machine_group,
       .commands = {"train", "val", "bench", "info"},
       .words = {"auto", "mpi", "nccl"}},
      {.name = "comm-timeout",
       .kind = Kind::number,
       .default_text = "600",
       .unit = "seconds",
       .help = "a rank that stays away longer ends the run",
       .group = machine_group,
       .commands = {"train", "val", "bench", "info"},
       .minimum = 0,
       .is_open_below = true},
      {.name = "threads",
       .kind = Kind::integer,
       .default_text = "auto",
       .unit = "threads",
       .help = "threads per rank that compute (CPU); auto: from the processors of the rank",
       .group = machine_group,
       .commands = {"train", "val", "predict", "bench", "info"},
       .words = {"auto"},
       .minimum = 1,
       .maximum = 1024},
      on_off("single-process", "off",
             "one process on purpose, although the environment is that of a job with several tasks",
             machine_group, {"train", "val", "bench", "info"}),
  };
}

Option count_of(std::string_view name, std::string_view value, std::string_view unit,
                std::string_view help, double minimum) {
  return {.name = name,
          .kind = Kind::integer,
          .default_text = value,
          .unit = unit,
          .help = help,
          .group = run_group,
          .commands = {"train"},
          .minimum = minimum};
}

std::vector<Option> run_options() {
  return {
      {.name = "out",
       .default_text = "runs/train",
       .help = "run folder; one that was used is refused without --resume or --exist-ok",
       .group = run_group,
       .commands = {"train"},
       .placeholder = "DIR"},
      on_off("exist-ok", "off", "start anew in a run folder that was used", run_group, {"train"}),
      {.name = "resume",
       .help =
           "auto: the newest good checkpoint in --out, else a fresh start; or a checkpoint file",
       .group = run_group,
       .commands = {"train"},
       .placeholder = "auto|FILE"},
      count_of("val-every", "1", "epochs", "validate this often; 0: after the last epoch only", 0),
      count_of("save-every", "1", "epochs", "save this often; 0: after the last epoch only", 0),
      count_of("save-steps", "0", "optimizer steps", "save also inside an epoch, this often; 0: no",
               0),
      count_of("keep", "2", "checkpoints", "newest ones that stay, beside the best", 1),
      {.name = "walltime",
       .default_text = "auto",
       .help = "time limit of the job from its start: seconds, MM:SS, HH:MM:SS or D-HH:MM:SS; "
               "auto: from "
               "the environment of Slurm or PBS",
       .group = run_group,
       .commands = {"train"},
       .placeholder = "TIME"},
      {.name = "stop-before",
       .kind = Kind::number,
       .default_text = "120",
       .unit = "seconds",
       .help = "stop with a checkpoint this long before the time limit",
       .group = run_group,
       .commands = {"train"},
       .minimum = 0},
      planned({.name = "on-checkpoint",
               .help =
                   "shell command that rank 0 runs after each new best or last, with the path in "
                   "$YOLOHPC_CHECKPOINT",
               .group = run_group,
               .commands = {"train"},
               .placeholder = "CMD"}),
      on_off("log-samples", "off", "write the image ids of every step to log.jsonl", run_group,
             {"train"}),
  };
}

}  // namespace

std::vector<Option> machine_options() {
  std::vector<Option> rows;
  for (auto const& part : {engine_options(), rank_options(), run_options()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

}  // namespace yolohpc::cli
