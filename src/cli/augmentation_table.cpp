#include <limits>

#include "table_rows.hpp"

namespace yolohpc::cli {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

struct Row {
  std::string_view name;
  std::string_view value;
  std::string_view unit;
  std::string_view help;
  double maximum;
  double minimum = 0;
};

constexpr Row rows_of_numbers[] = {
    {"hsv-h", ".015", "of the colour circle", "largest change of hue", 1},
    {"hsv-s", ".7", "", "largest relative change of saturation", 1},
    {"hsv-v", ".4", "", "largest relative change of brightness", 1},
    {"degrees", "0", "degrees", "largest rotation", 180},
    {"translate", ".1", "of the image size", "largest shift", 1},
    {"scale", ".5", "", "largest relative change of size", 1},
    {"shear", "0", "degrees", "largest shear", 180, -180},
    {"flipud", "0", "probability", "upside down", 1},
    {"fliplr", ".5", "probability", "left to right", 1},
    {"mosaic", "1", "probability", "four images in one", 1},
    {"mixup", "0", "probability", "two images blended", 1},
};

}  // namespace

std::vector<Option> augmentation_options() {
  std::vector<Option> rows;
  for (auto const& row : rows_of_numbers) {
    rows.push_back({.name = row.name,
                    .kind = Kind::number,
                    .default_text = row.value,
                    .unit = row.unit,
                    .help = row.help,
                    .group = augment_group,
                    .commands = {"train", "bench"},
                    .minimum = row.minimum,
                    .maximum = row.maximum});
  }
  rows.push_back({.name = "close-mosaic",
                  .kind = Kind::integer,
                  .default_text = "10",
                  .unit = "epochs",
                  .help = "last epochs without mosaic",
                  .group = augment_group,
                  .commands = {"train"},
                  .minimum = 0,
                  .maximum = no_limit});
  rows.push_back({.name = "multi-scale",
                  .kind = Kind::size_range,
                  .default_text = "off",
                  .unit = "pixels",
                  .help = "network input sizes to draw from, one for all ranks",
                  .group = augment_group,
                  .commands = {"train"},
                  .words = {"off"},
                  .minimum = 32,
                  .maximum = no_limit,
                  .multiple_of = 32,
                  .is_implemented = false});
  rows.push_back({.name = "multi-scale-every",
                  .kind = Kind::choice,
                  .default_text = "step",
                  .help = "when a new size is drawn",
                  .group = augment_group,
                  .commands = {"train"},
                  .words = {"step", "epoch"},
                  .is_implemented = false});
  return rows;
}

}  // namespace yolohpc::cli
