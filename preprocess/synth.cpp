// yolohpc-synth OUT: makes a small COCO-style data set of drawn shapes.
#include "yolohpc/data/synth.hpp"

#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/base/log.hpp"
#include "yolohpc/cli/options.hpp"
#include "yolohpc/cli/version.hpp"

namespace {

using namespace yolohpc;
using base::ExitCode;
using base::Level;

cli::Option count_option(char const* name, char const* value, char const* unit, char const* help,
                         double minimum, double maximum) {
  return {.name = name,
          .kind = cli::Kind::integer,
          .default_text = value,
          .unit = unit,
          .help = help,
          .group = "Data set",
          .minimum = minimum,
          .maximum = maximum};
}

cli::Table make_table() {
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  cli::Table table{
      .program = "yolohpc-synth",
      .summary = "makes a small COCO-style data set of drawn shapes",
      .commands = {{.name = "",
                    .summary = "Makes a small COCO-style data set of drawn shapes: images/train, "
                               "images/val,\nannotations/instances_train.json, "
                               "annotations/instances_val.json. Same options, same bytes.",
                    .positionals = {{.name = "OUT"}},
                    .example = "yolohpc-synth shapes --train 400 --val 100 --seed 0"}},
      .options = {count_option("train", "400", "images", "to train on", 1, no_limit),
                  count_option("val", "100", "images", "to validate on", 1, no_limit),
                  {.name = "size",
                   .default_text = "320x320",
                   .unit = "pixels",
                   .help = "largest width and height; pictures have three quarters of it or more",
                   .group = "Data set",
                   .placeholder = "WxH"},
                  count_option("classes", "6", "classes",
                               "the first ones of disc, cross, triangle, ring, star, square, "
                               "crescent, hexagon",
                               1, static_cast<double>(data::synth_shapes.size())),
                  count_option("quality", "90", "", "of the JPEG files", 1, 100),
                  count_option("seed", "0", "", "of all random numbers", 0, no_limit)}};
  table.reads_environment = false;
  for (auto option : cli::general_options()) table.options.push_back(std::move(option));
  return table;
}

// WIDTHxHEIGHT, or one number for both.
void read_size(std::string const& text, data::SynthSettings& settings) {
  int used = 0;
  int const count =
      std::sscanf(text.c_str(), "%dx%d%n", &settings.width_px, &settings.height_px, &used);
  if (count == 1) settings.height_px = settings.width_px;
  bool const is_read = (count == 1 && text == std::to_string(settings.width_px)) ||
                       (count == 2 && used == static_cast<int>(text.size()));
  YOLOHPC_CHECK_AS(ExitCode::usage, is_read, "--size is '", text,
                   "', which is not of the form WxH. Give two whole numbers, such as 320x240.");
}

data::SynthSettings settings_from(cli::ParsedOptions const& options) {
  data::SynthSettings settings;
  settings.train_images = options.get<std::int64_t>("train");
  settings.val_images = options.get<std::int64_t>("val");
  read_size(options.get<std::string>("size"), settings);
  settings.class_count = options.get<int>("classes");
  settings.jpeg_quality = options.get<int>("quality");
  settings.seed = static_cast<std::uint64_t>(options.get<std::int64_t>("seed"));
  return settings;
}

void make_set(cli::ParsedOptions const& options, base::Log& log) {
  constexpr double interval_s = 10;
  auto const settings = settings_from(options);
  auto const& out = options.positionals().front();
  auto const total = settings.train_images + settings.val_images;
  base::Stopwatch since_line;
  auto const report = data::write_synth_set(out, settings, [&](std::int64_t done) {
    if (since_line.elapsed_s() < interval_s) return;
    since_line.restart_s();
    log.root(Level::info, "drew ", done, " of ", total, " pictures");
  });
  log.root(Level::info, out, report.was_there ? ": there already, " : ": ", report.images,
           " images with ", report.objects, " objects of ", settings.class_count, " classes");
  auto const json = options.get<std::string>("json");
  if (json.empty()) return;
  cli::write_json_result(
      json, base::join("{\"images\": ", report.images, ", \"objects\": ", report.objects, "}"));
}

int run(std::vector<std::string> const& words, base::Log& log) {
  auto const table = make_table();
  auto const options = cli::parse(table, "", words, {});
  if (options.wants_help()) {
    std::fputs(cli::command_help(table, "").c_str(), stdout);
  } else if (options.wants_version()) {
    auto const json = options.get<std::string>("json");
    if (json.empty()) std::fputs(cli::version_text(cli::build_record()).c_str(), stdout);
    if (!json.empty()) cli::write_json_result(json, cli::version_json(cli::build_record()));
  } else {
    make_set(options, log);
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace

int main(int argc, char** argv) {
  base::Log log;
  try {
    return run({argv + 1, argv + argc}, log);
  } catch (base::Error const& error) {
    log.root(Level::error, error.what());
    return static_cast<int>(error.code());
  } catch (std::exception const& error) {
    log.root(Level::error, error.what());
    return static_cast<int>(ExitCode::failure);
  }
}
