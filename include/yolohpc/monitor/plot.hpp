// Line plots as SVG text.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace yolohpc::monitor {

/// One curve. x and y have the same length; points that are not finite break the line.
struct Series {
  std::string label = {};
  std::vector<double> x = {};
  std::vector<double> y = {};
  bool is_dashed = false;
};

struct Plot {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};
  std::vector<Series> series = {};
  bool starts_at_zero = true;  ///< the y axis includes 0
  bool has_whole_x = true;     ///< ticks of the x axis are whole numbers
  double y_maximum = std::numeric_limits<double>::quiet_NaN();  ///< NaN: from the data
};

/// Tick values that are round (1, 2, 5 times a power of ten) and cover [low, high]; at most `count`
/// + 2.
std::vector<double> ticks(double low, double high, int count);

/// An `<svg>` element of 460 x 300 units with axes, grid, ticks, legend and curves.
std::string plot_svg(Plot const& plot);
/// Several plots in one `<svg>` document, `columns` side by side.
std::string plot_grid_svg(std::vector<Plot> const& plots, int columns);

/// The five characters that XML reserves, replaced.
std::string escape_xml(std::string const& text);

}  // namespace yolohpc::monitor
