// report.html and results.svg of a run.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "yolohpc/monitor/results_csv.hpp"

namespace yolohpc::monitor {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

/// What the report shows. Empty parts are left out.
struct ReportContent {
  std::string title = {};               ///< such as the run folder's name
  TextPairs facts = {};                 ///< model, data, ranks, device, time: shown at the top
  std::vector<EpochRow> rows = {};      ///< one per epoch
  TextPairs results = {};               ///< final numbers, such as the 12 COCO values
  TextPairs config = {};                ///< the resolved configuration
  std::vector<std::string> notes = {};  ///< replaced images, skipped steps, warnings
};

/// A page that needs nothing beside itself: no script, no font, no network.
std::string report_html(ReportContent const& content);
/// Losses, mAP, learning rate and throughput over the epochs, as one picture.
std::string results_svg(std::vector<EpochRow> const& rows);

/// Writes report.html and results.svg. \throws Error  a file cannot be written
void write_report(std::filesystem::path const& folder, ReportContent const& content);

}  // namespace yolohpc::monitor
