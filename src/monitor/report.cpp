#include "yolohpc/monitor/report.hpp"

#include <sstream>

#include "yolohpc/base/files.hpp"
#include "yolohpc/monitor/plot.hpp"

namespace yolohpc::monitor {
namespace {

using Rows = std::vector<EpochRow>;

constexpr int plots_side_by_side = 4;
constexpr double percent = 100;

constexpr char style_sheet[] = R"(
body { font: 15px/1.5 Helvetica, Arial, "DejaVu Sans", sans-serif; color: #222; background: #f6f7f8;
       margin: 0; }
main { max-width: 1180px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 25px; margin: 8px 0 16px; } h2 { font-size: 18px; margin: 32px 0 10px; }
section, details { background: #fff; border: 1px solid #dfe2e5; border-radius: 6px;
                   padding: 12px 16px; margin: 12px 0; overflow-x: auto; }
summary { cursor: pointer; font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(340px, 1fr)); gap: 12px; }
.plots svg { width: 100%; border: 1px solid #dfe2e5; border-radius: 6px; background: #fff; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 14px 3px 0; text-align: left; vertical-align: top; }
th { font-weight: 600; color: #555; }
.epochs th, .epochs td { text-align: right; white-space: nowrap; font-size: 13px; }
.epochs tr:nth-child(even) { background: #f6f7f8; }
.columns { columns: 2 380px; } .columns table { width: 100%; }
.code { font: 13px "DejaVu Sans Mono", Menlo, monospace; }
)";

Series curve(std::string label, Rows const& rows, double EpochRow::*member, double factor = 1) {
  Series series{.label = std::move(label), .x = {}, .y = {}};
  for (auto const& row : rows) {
    series.x.push_back(static_cast<double>(row.epoch));
    series.y.push_back(factor * row.*member);
  }
  return series;
}

Series dashed(Series series) {
  series.is_dashed = true;
  return series;
}

Plot over_epochs(std::string title, std::string y_label, std::vector<Series> series) {
  return {.title = std::move(title),
          .x_label = "epoch",
          .y_label = std::move(y_label),
          .series = std::move(series)};
}

std::vector<Plot> plots_of(Rows const& rows) {
  return {
      over_epochs("Box loss", "loss",
                  {curve("training", rows, &EpochRow::train_box_loss),
                   curve("validation", rows, &EpochRow::val_box_loss)}),
      over_epochs("Class loss", "loss",
                  {curve("training", rows, &EpochRow::train_cls_loss),
                   curve("validation", rows, &EpochRow::val_cls_loss)}),
      over_epochs("Distribution focal loss", "loss",
                  {curve("training", rows, &EpochRow::train_dfl_loss),
                   curve("validation", rows, &EpochRow::val_dfl_loss)}),
      over_epochs(
          "Mean average precision", "mAP",
          {curve("mAP50", rows, &EpochRow::map50), curve("mAP50-95", rows, &EpochRow::map50_95),
           dashed(curve("COCO AP", rows, &EpochRow::coco_ap))}),
      over_epochs("Precision and recall", "share",
                  {curve("precision", rows, &EpochRow::precision),
                   curve("recall", rows, &EpochRow::recall)}),
      over_epochs(
          "Learning rate", "per step",
          {curve("pg0", rows, &EpochRow::lr_pg0), dashed(curve("pg1", rows, &EpochRow::lr_pg1)),
           dashed(curve("pg2", rows, &EpochRow::lr_pg2))}),
      over_epochs("Throughput, all ranks", "images / s",
                  {curve("training", rows, &EpochRow::images_per_s)}),
      over_epochs("Waiting, share of the training time", "%",
                  {curve("for data", rows, &EpochRow::data_wait, percent),
                   curve("for other ranks", rows, &EpochRow::comm_wait, percent)}),
  };
}

void write_pairs(std::ostream& out, TextPairs const& pairs) {
  out << "<table>\n";
  for (auto const& [key, value] : pairs) {
    out << "<tr><th>" << escape_xml(key) << "</th><td>" << escape_xml(value) << "</td></tr>\n";
  }
  out << "</table>\n";
}

// The rows as results.csv has them.
void write_epochs(std::ostream& out, Rows const& rows) {
  auto const write_line = [&](std::string const& line, char const* cell) {
    out << "<tr>";
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) {
      out << '<' << cell << '>' << escape_xml(field) << "</" << cell << '>';
    }
    out << "</tr>\n";
  };
  out << "<details><summary>Every epoch</summary><table class=\"epochs\">\n";
  write_line(results_header(), "th");
  for (auto const& row : rows) write_line(results_row(row), "td");
  out << "</table></details>\n";
}

void write_plots(std::ostream& out, Rows const& rows) {
  out << "<h2>Curves</h2>\n<div class=\"plots\">\n";
  for (auto const& plot : plots_of(rows)) out << plot_svg(plot);
  out << "</div>\n";
}

void write_notes(std::ostream& out, std::vector<std::string> const& notes) {
  out << "<h2>To be noted</h2>\n<section><ul>\n";
  for (auto const& note : notes) out << "<li>" << escape_xml(note) << "</li>\n";
  out << "</ul></section>\n";
}

}  // namespace

std::string results_svg(Rows const& rows) {
  return plot_grid_svg(plots_of(rows), plots_side_by_side);
}

std::string report_html(ReportContent const& content) {
  std::ostringstream out;
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      << "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>"
      << escape_xml(content.title) << "</title>\n<style>" << style_sheet << "</style>\n</head>\n"
      << "<body>\n<main>\n<h1>" << escape_xml(content.title) << "</h1>\n";
  if (!content.facts.empty()) {
    out << "<section>\n";
    write_pairs(out, content.facts);
    out << "</section>\n";
  }
  if (!content.results.empty()) {
    out << "<h2>Results</h2>\n<section class=\"columns\">\n";
    write_pairs(out, content.results);
    out << "</section>\n";
  }
  if (!content.notes.empty()) write_notes(out, content.notes);
  if (!content.rows.empty()) {
    write_plots(out, content.rows);
    write_epochs(out, content.rows);
  }
  if (!content.config.empty()) {
    out << "<details><summary>Configuration</summary><div class=\"columns code\">\n";
    write_pairs(out, content.config);
    out << "</div></details>\n";
  }
  out << "</main>\n</body>\n</html>\n";
  return out.str();
}

void write_report(std::filesystem::path const& folder, ReportContent const& content) {
  base::write_file_atomically(folder / "report.html", report_html(content));
  base::write_file_atomically(folder / "results.svg", results_svg(content.rows));
}

}  // namespace yolohpc::monitor
