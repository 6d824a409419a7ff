#include "table_rows.hpp"

namespace yolohpc::cli {
namespace {

Option file(std::string_view name, std::string_view help, std::string_view group,
            std::vector<std::string_view> commands, std::string_view placeholder = "FILE") {
  return {.name = name,
          .help = help,
          .group = group,
          .commands = std::move(commands),
          .placeholder = placeholder};
}

std::vector<Option> detection_options() {
  return {
      {.name = "rect",
       .kind = Kind::on_off,
       .default_text = "off",
       .help = "batches of images of like shape with little padding, instead of squares",
       .group = detect_group,
       .commands = {"val"}},
      {.name = "conf",
       .kind = Kind::number,
       .default_text = "0.001",
       .unit = "probability",
       .help = "detections must be above it",
       .group = detect_group,
       .commands = {"val", "bench"},
       .minimum = 0,
       .maximum = 1},
      {.name = "conf",
       .kind = Kind::number,
       .default_text = "0.25",
       .unit = "probability",
       .help = "detections must be above it",
       .group = detect_group,
       .commands = {"predict"},
       .minimum = 0,
       .maximum = 1},
      {.name = "iou",
       .kind = Kind::number,
       .default_text = "0.7",
       .help = "boxes of one class that overlap more are suppressed",
       .group = detect_group,
       .commands = {"val", "predict", "bench"},
       .minimum = 0,
       .maximum = 1},
      {.name = "max-det",
       .kind = Kind::integer,
       .default_text = "300",
       .unit = "detections per image",
       .help = "the best ones are kept",
       .group = detect_group,
       .commands = {"val", "predict", "bench"},
       .minimum = 1},
  };
}

std::vector<Option> file_options() {
  return {
      file("gt", "COCO instances, the ground truth", data_group, {"eval"}, "FILE.json"),
      file("dt", "COCO results, the detections", data_group, {"eval"}, "FILE.json"),
      file("source", "an image, or a folder of images", data_group, {"predict"}, "FILE|DIR"),
      file("predictions", "write the detections as COCO results", output_group, {"val"},
           "FILE.json"),
      file("out", "folder for predictions.json and the pictures", output_group, {"predict"}, "DIR"),
      file("out", "file to write", output_group, {"export"}),
      file("out", "folder to write to (bench checkpoint)", output_group, {"bench"}, "DIR"),
      {.name = "format",
       .kind = Kind::choice,
       .default_text = "onnx",
       .help = "format of the exported file",
       .group = output_group,
       .commands = {"export"},
       .words = {"onnx", "torchscript", "safetensors", "pt"}},
      {.name = "dynamic",
       .kind = Kind::on_off,
       .default_text = "off",
       .help = "leave batch and image size open",
       .group = output_group,
       .commands = {"export"}},
      {.name = "half",
       .kind = Kind::on_off,
       .default_text = "off",
       .help = "store the weights as float16",
       .group = output_group,
       .commands = {"export"}},
  };
}

std::vector<Option> bench_options() {
  auto const count = [](std::string_view name, std::string_view value, std::string_view unit,
                        std::string_view help, double minimum) {
    return Option{.name = name,
                  .kind = Kind::integer,
                  .default_text = value,
                  .unit = unit,
                  .help = help,
                  .group = measure_group,
                  .commands = {"bench"},
                  .minimum = minimum};
  };
  return {
      count("steps", "20", "steps", "measured in one repeat (step, loader, comm, checkpoint)", 1),
      count("warmup-steps", "3", "steps", "run before, not measured", 0),
      count("repeats", "5", "repeats", "the median is reported, with the spread", 1),
      count("classes", "80", "classes", "of the model (step, checkpoint)", 1),
      count("boxes", "8", "boxes per image", "of the synthetic batches (step)", 0),
      {.name = "size-mib",
       .kind = Kind::number,
       .default_text = "model",
       .unit = "MiB",
       .help = "message of bench comm; model: the gradients of --model",
       .group = measure_group,
       .commands = {"bench"},
       .words = {"model"},
       .minimum = 0,
       .is_open_below = true},
  };
}

}  // namespace

std::vector<Option> inference_options() {
  std::vector<Option> rows;
  for (auto const& part : {detection_options(), file_options(), bench_options()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

std::vector<Option> general_options() {
  auto const one_shot = [](Option option) {
    option.group = general_group;
    option.is_one_shot = true;
    return option;
  };
  return {
      one_shot({.name = "config",
                .help = "read `key = value` lines, the names being those of the options",
                .placeholder = "FILE"}),
      one_shot({.name = "json",
                .help = "write the result as JSON; - is standard output",
                .placeholder = "FILE"}),
      one_shot({.name = "help", .kind = Kind::action, .help = "show this text"}),
      one_shot({.name = "version",
                .kind = Kind::action,
                .help = "show version and build; as JSON with --json"}),
  };
}

}  // namespace yolohpc::cli
