// The commands and options of yolohpc-pack.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "yolohpc/cli/option_table.hpp"

namespace yolohpc {

inline cli::Option option_row(cli::Option row, std::string_view group,
                              std::vector<std::string_view> commands) {
  row.group = group;
  row.commands = std::move(commands);
  return row;
}

inline std::vector<cli::Option> pack_options() {
  using cli::Kind;
  constexpr std::string_view input = "Input";
  constexpr std::string_view output = "Output";
  constexpr std::string_view machine = "Ranks and threads";
  std::vector<std::string_view> const pack{"pack"};
  return {
      option_row(
          {.name = "images",
           .help = "folder that the file names of the labels are relative to (yolo: replaces "
                   "`path` of the yaml file)",
           .placeholder = "DIR"},
          input, pack),
      option_row({.name = "annotations",
                  .help = "COCO instances JSON, or data.yaml with --labels yolo",
                  .placeholder = "FILE"},
                 input, pack),
      option_row({.name = "labels",
                  .kind = Kind::choice,
                  .default_text = "coco",
                  .help = "form of the labels",
                  .words = {"coco", "yolo"}},
                 input, pack),
      option_row({.name = "split",
                  .default_text = "train",
                  .help = "name of the split (yolo: also the entry of the yaml file)",
                  .placeholder = "NAME"},
                 output, pack),
      option_row({.name = "out", .help = "folder for the shards", .placeholder = "DIR"}, output,
                 pack),
      option_row({.name = "shard-mib",
                  .kind = Kind::number,
                  .default_text = "512",
                  .unit = "MiB",
                  .help = "image bytes in one shard file; a larger image gets a shard of its own",
                  .minimum = 0,
                  .maximum = 1 << 20,
                  .is_open_below = true},
                 output, pack),
      option_row(
          {.name = "skip-bad",
           .kind = Kind::on_off,
           .default_text = "off",
           .help = "leave out what has a fault and pack the rest; off: any fault ends with exit "
                   "code 3 and nothing is packed"},
          output, pack),
      option_row({.name = "overwrite",
                  .kind = Kind::on_off,
                  .default_text = "off",
                  .help = "replace a packed split of the same name"},
                 output, pack),
      option_row({.name = "report",
                  .help = "write the report as JSON (the same as --json)",
                  .placeholder = "FILE.json"},
                 output, pack),
      option_row({.name = "threads",
                  .kind = Kind::integer,
                  .default_text = "auto",
                  .help = "threads of each rank that read and decode; auto: its share of the cores",
                  .words = {"auto"},
                  .minimum = 1,
                  .maximum = 1024},
                 machine, pack),
      option_row({.name = "cache-mib",
                  .kind = Kind::number,
                  .default_text = "1024",
                  .unit = "MiB",
                  .help = "checked images that a rank keeps in memory; those beyond are read twice",
                  .minimum = 0,
                  .maximum = 1 << 24},
                 machine, pack),
      option_row({.name = "comm-timeout",
                  .kind = Kind::number,
                  .default_text = "86400",
                  .unit = "s",
                  .help = "longest wait of one rank for another; checking a large set takes hours",
                  .minimum = 0,
                  .is_open_below = true},
                 machine, pack),
      option_row({.name = "single-process",
                  .kind = Kind::on_off,
                  .default_text = "off",
                  .help = "one process on purpose, whatever a launcher's variables say"},
                 machine, pack),
      option_row({.name = "check-split", .help = "look at this split alone", .placeholder = "NAME"},
                 input, {"verify", "ls"}),
  };
}

inline std::vector<cli::Option> general_options() {
  using cli::Kind;
  constexpr std::string_view group = "General";
  std::vector<cli::Option> rows{
      option_row({.name = "config",
                  .help = "read `key = value` lines, the names being those of the options",
                  .placeholder = "FILE",
                  .is_one_shot = true},
                 group, {}),
      option_row({.name = "json",
                  .help = "write the result as JSON; - is standard output",
                  .placeholder = "FILE",
                  .is_one_shot = true},
                 group, {}),
      option_row(
          {.name = "help", .kind = Kind::action, .help = "show this text", .is_one_shot = true},
          group, {}),
      option_row({.name = "version",
                  .kind = Kind::action,
                  .help = "show version and build; as JSON with --json",
                  .is_one_shot = true},
                 group, {})};
  return rows;
}

inline cli::Table const& pack_table() {
  static cli::Table const table = [] {
    cli::Table made;
    made.program = "yolohpc-pack";
    made.summary = "packs images and labels into HDF5 shards";
    made.commands = {
        {.name = "pack",
         .summary = "check every image, then write the shards of a split (the word `pack` may be "
                    "left out)",
         .required = {"out"},
         .example = "mpirun -np 4 yolohpc-pack --images train2017 --annotations "
                    "instances_train2017.json --split train --out packed"},
        {.name = "verify",
         .summary = "read a packed folder and check every checksum",
         .positionals = {{.name = "DIR"}},
         .example = "yolohpc-pack verify packed"},
        {.name = "ls",
         .summary = "show what is in a packed folder",
         .positionals = {{.name = "DIR"}},
         .example = "yolohpc-pack ls packed"},
    };
    made.options = pack_options();
    auto const general = general_options();
    made.options.insert(made.options.end(), general.begin(), general.end());
    return made;
  }();
  return table;
}

}  // namespace yolohpc
