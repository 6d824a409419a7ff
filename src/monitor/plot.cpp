#include "yolohpc/monitor/plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>
#include <string_view>

namespace yolohpc::monitor {
namespace {

constexpr double plot_width = 460;
constexpr double plot_height = 300;
constexpr double left = 64;
constexpr double right = plot_width - 18;
constexpr double top = 58;
constexpr double bottom = plot_height - 46;
constexpr double title_y = 22;
constexpr double legend_y = 42;
constexpr double legend_line = 18;
constexpr double legend_gap = 16;
constexpr double letter_width = 6.4;  // of the legend's 11.5 px sans-serif, on average
constexpr int x_tick_count = 6;
constexpr int y_tick_count = 5;
constexpr std::size_t most_marked_points = 40;

// Distinct for colour-blind readers too. Source: Okabe and Ito, Color Universal Design, 2008.
constexpr std::string_view colors[] = {"#0072B2", "#D55E00", "#009E73",
                                       "#CC79A7", "#E69F00", "#56B4E9"};

struct Range {
  double low = 0;
  double high = 1;
};

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", std::fabs(value) < 1e-12 ? 0.0 : value);
  return text;
}

std::string place(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

bool is_drawable(double x, double y) {
  return std::isfinite(x) && std::isfinite(y);
}

// Range of the x or the y values of all points that can be drawn; empty without any.
std::optional<Range> data_range(Plot const& plot, std::vector<double> Series::*axis) {
  std::optional<Range> range;
  for (auto const& series : plot.series) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!is_drawable(series.x[i], series.y[i])) continue;
      double const value = (series.*axis)[i];
      if (!range) range = Range{value, value};
      range->low = std::min(range->low, value);
      range->high = std::max(range->high, value);
    }
  }
  return range;
}

double round_step(double at_least) {
  double const power = std::pow(10.0, std::floor(std::log10(at_least)));
  for (double const factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= at_least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

class Canvas {
 public:
  explicit Canvas(Plot const& plot) : plot_(plot) {
    auto const x = data_range(plot, &Series::x);
    auto const y = data_range(plot, &Series::y);
    has_data_ = x.has_value();
    x_ = x.value_or(Range{});
    if (x_.low == x_.high) x_ = {x_.low - 1, x_.high + 1};
    Range wanted = y.value_or(Range{});
    if (plot.starts_at_zero) wanted = {std::min(wanted.low, 0.0), std::max(wanted.high, 0.0)};
    if (std::isfinite(plot.y_maximum)) wanted.high = plot.y_maximum;
    y_ticks_ = ticks(wanted.low, wanted.high, y_tick_count);
    y_ = {y_ticks_.front(), y_ticks_.back()};
  }

  std::string content() {
    title();
    axes();
    legend();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) curve(plot_.series[i], color(i));
    if (!has_data_) text((left + right) / 2, (top + bottom) / 2, "middle", "no data", "#888");
    return out_.str();
  }

 private:
  static std::string_view color(std::size_t series) { return colors[series % std::size(colors)]; }
  double x_of(double value) const {
    return left + (value - x_.low) / (x_.high - x_.low) * (right - left);
  }
  double y_of(double value) const {
    return bottom - (value - y_.low) / (y_.high - y_.low) * (bottom - top);
  }

  void text(double x, double y, char const* anchor, std::string const& content, char const* fill,
            std::string const& more = {}) {
    out_ << "<text x=\"" << place(x) << "\" y=\"" << place(y) << "\" text-anchor=\"" << anchor
         << "\" fill=\"" << fill << "\" font-size=\"11.5\"" << more << ">" << escape_xml(content)
         << "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, char const* stroke) {
    out_ << "<line x1=\"" << place(x1) << "\" y1=\"" << place(y1) << "\" x2=\"" << place(x2)
         << "\" y2=\"" << place(y2) << "\" stroke=\"" << stroke << "\"/>\n";
  }

  void title() {
    out_ << "<text x=\"" << place(left) << "\" y=\"" << place(title_y)
         << "\" fill=\"#222\" font-size=\"14\" font-weight=\"600\">" << escape_xml(plot_.title)
         << "</text>\n";
  }

  void axes() {
    for (double const tick : y_ticks_) {
      line(left, y_of(tick), right, y_of(tick), "#e4e4e4");
      text(left - 7, y_of(tick) + 4, "end", number_text(tick), "#555");
    }
    for (double const tick : ticks(x_.low, x_.high, x_tick_count)) {
      bool const is_outside = tick < x_.low || tick > x_.high;
      if (is_outside || (plot_.has_whole_x && tick != std::floor(tick))) continue;
      line(x_of(tick), bottom, x_of(tick), bottom + 4, "#888");
      text(x_of(tick), bottom + 17, "middle", number_text(tick), "#555");
    }
    line(left, bottom, right, bottom, "#888");
    line(left, top, left, bottom, "#888");
    text((left + right) / 2, plot_height - 10, "middle", plot_.x_label, "#333");
    double const middle = (top + bottom) / 2;
    text(15, middle, "middle", plot_.y_label, "#333",
         " transform=\"rotate(-90 15 " + place(middle) + ")\"");
  }

  void legend() {
    double x = left;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      auto const& series = plot_.series[i];
      out_ << "<line x1=\"" << place(x) << "\" y1=\"" << place(legend_y - 4) << "\" x2=\""
           << place(x + legend_line) << "\" y2=\"" << place(legend_y - 4) << "\" stroke=\""
           << color(i) << "\" stroke-width=\"2.5\"" << dashes(series) << "/>\n";
      text(x + legend_line + 5, legend_y, "start", series.label, "#333");
      x += legend_line + 5 + letter_width * static_cast<double>(series.label.size()) + legend_gap;
    }
  }

  static char const* dashes(Series const& series) {
    return series.is_dashed ? " stroke-dasharray=\"5 3\"" : "";
  }

  void curve(Series const& series, std::string_view color) {
    std::string path;
    std::ostringstream marks;
    bool is_pen_down = false;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!is_drawable(series.x[i], series.y[i])) {
        is_pen_down = false;
        continue;
      }
      auto const x = place(x_of(series.x[i]));
      auto const y = place(std::clamp(y_of(series.y[i]), top, bottom));
      path += (is_pen_down ? "L" : "M") + x + ' ' + y;
      marks << "<circle cx=\"" << x << "\" cy=\"" << y << "\" r=\"2.2\" fill=\"" << color << "\"/>";
      is_pen_down = true;
    }
    if (path.empty()) return;
    out_ << "<path d=\"" << path << "\" fill=\"none\" stroke=\"" << color
         << "\" stroke-width=\"1.8\" stroke-linejoin=\"round\"" << dashes(series) << "/>\n";
    if (series.x.size() <= most_marked_points) out_ << marks.str() << '\n';
  }

  Plot const& plot_;
  Range x_;
  Range y_;
  std::vector<double> y_ticks_;
  bool has_data_ = false;
  std::ostringstream out_;
};

std::string open_svg(double width, double height) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number_text(width) + ' ' +
         number_text(height) +
         "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n"
         "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
}

}  // namespace

std::vector<double> ticks(double low, double high, int count) {
  if (!(high > low)) {
    double const margin = low == 0 ? 1 : std::fabs(low) / 2;
    low -= margin;
    high += margin;
  }
  double const step = round_step((high - low) / count);
  // A value that is a tick up to rounding does not ask for one more.
  auto const first = std::floor(low / step + 1e-9);
  auto const last = std::ceil(high / step - 1e-9);
  std::vector<double> result;
  for (double k = first; k <= last; ++k) result.push_back(k * step);
  return result;
}

std::string plot_svg(Plot const& plot) {
  return open_svg(plot_width, plot_height) + Canvas(plot).content() + "</svg>\n";
}

std::string plot_grid_svg(std::vector<Plot> const& plots, int columns) {
  auto const rows = (static_cast<int>(plots.size()) + columns - 1) / columns;
  auto text = open_svg(columns * plot_width, rows * plot_height);
  for (int i = 0; i < static_cast<int>(plots.size()); ++i) {
    text += "<g transform=\"translate(" + place(i % columns * plot_width) + ' ' +
            place(i / columns * plot_height) + ")\">\n" +
            Canvas(plots[static_cast<std::size_t>(i)]).content() + "</g>\n";
  }
  return text + "</svg>\n";
}

std::string escape_xml(std::string const& text) {
  std::string escaped;
  for (char const letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += letter;
    }
  }
  return escaped;
}

}  // namespace yolohpc::monitor
