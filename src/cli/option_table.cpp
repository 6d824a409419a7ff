#include "yolohpc/cli/option_table.hpp"

#include <algorithm>

#include "table_rows.hpp"

namespace yolohpc::cli {
namespace {

bool belongs(Option const& option, std::string_view command) {
  return option.commands.empty() || std::find(option.commands.begin(), option.commands.end(),
                                              command) != option.commands.end();
}

std::vector<Command> yolohpc_commands() {
  return {
      {.name = "train",
       .summary = "train a detector; --resume goes on where a run stopped",
       .required = {"data"},
       .example = "mpirun -np 4 yolohpc train --data coco --model yolo11s --batch 64 --out runs/s"},
      {.name = "val",
       .summary = "the 12 COCO numbers of a model on a packed data set",
       .required = {"weights", "data"},
       .example = "mpirun -np 4 yolohpc val --weights runs/s/best.safetensors --data coco"},
      {.name = "eval",
       .summary = "the 12 COCO numbers of a file of detections",
       .required = {"gt", "dt"},
       .example = "yolohpc eval --gt instances_val.json --dt predictions.json"},
      {.name = "predict",
       .summary = "find objects in images: boxes as JSON and as pictures",
       .required = {"weights", "source", "out"},
       .example = "yolohpc predict --weights best.safetensors --source photos --out found"},
      {.name = "export",
       .summary = "write a model as ONNX, TorchScript, safetensors or pt",
       .required = {"weights", "out"},
       .example = "yolohpc export --weights best.safetensors --format onnx --out yolo11s.onnx"},
      {.name = "bench",
       .summary = "measure a part: step, loader, comm, eval, checkpoint",
       .positionals = {{"what", {"step", "loader", "comm", "eval", "checkpoint"}}},
       .example = "mpirun -np 4 yolohpc bench step --model yolo11s --batch 64 --json step.json"},
      {.name = "info",
       .summary = "versions, build, ranks by host, devices, settings in force",
       .example = "mpirun -np 4 yolohpc info"},
      {.name = "checkpoint",
       .summary = "verify or list checkpoints",
       .positionals = {{"what", {"verify", "ls"}}, {"path", {}}},
       .example = "yolohpc checkpoint verify runs/s/checkpoints"},
  };
}

Table make_yolohpc_table() {
  Table table{.program = "yolohpc",
              .summary = "trains YOLO11 detectors with MPI, one process per GPU",
              .commands = yolohpc_commands(),
              .options = {}};
  for (auto const& part : {recipe_options(), augmentation_options(), machine_options(),
                           inference_options(), general_options()}) {
    table.options.insert(table.options.end(), part.begin(), part.end());
  }
  return table;
}

}  // namespace

Command const* Table::find_command(std::string_view name) const {
  auto const found = std::find_if(commands.begin(), commands.end(),
                                  [&](Command const& command) { return command.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

Option const* Table::find_option(std::string_view command, std::string_view name) const {
  auto const found = std::find_if(options.begin(), options.end(), [&](Option const& option) {
    return option.name == name && belongs(option, command);
  });
  return found == options.end() ? nullptr : &*found;
}

std::vector<Option const*> Table::options_of(std::string_view command) const {
  std::vector<Option const*> found;
  for (auto const& option : options) {
    if (belongs(option, command)) found.push_back(&option);
  }
  return found;
}

Table const& yolohpc_table() {
  static Table const table = make_yolohpc_table();
  return table;
}

}  // namespace yolohpc::cli
