// The report is one file with everything in it, and well-formed.
#include "yolohpc/monitor/report.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "yolohpc/base/files.hpp"

#include "support/golden.hpp"

namespace yolohpc::monitor {
namespace {

ReportContent example() {
  ReportContent content{.title = "runs/<exp>", .facts = {{"model", "yolo11n"}}};
  for (int i = 1; i <= 30; ++i) {
    double const x = i / 30.0;
    EpochRow row{.epoch = i, .time_s = 12.5 * i};
    row.train_box_loss = 1.2 + 2 * std::exp(-4 * x);
    row.train_cls_loss = 0.8 + 3 * std::exp(-5 * x);
    row.train_dfl_loss = 1.0 + std::exp(-4 * x);
    row.val_box_loss = 1.4 + 2 * std::exp(-3.5 * x);
    row.val_cls_loss = 1.0 + 3 * std::exp(-4.5 * x);
    row.val_dfl_loss = i % 7 == 0 ? std::nan("") : 1.1 + std::exp(-3 * x);
    row.map50 = 0.83 / (1 + std::exp(-12 * (x - 0.4)));
    row.map50_95 = 0.6 * row.map50;
    row.coco_ap = 0.59 * row.map50;
    row.precision = 0.5 + 0.4 * x;
    row.recall = 0.3 + 0.5 * x;
    row.lr_pg0 = 0.01 * std::min(1.0, 10 * x) * (1 - 0.99 * x);
    row.lr_pg1 = row.lr_pg0;
    row.lr_pg2 = row.lr_pg0 + 0.09 * std::max(0.0, 1 - 10 * x);
    row.images_per_s = 140 + 5 * std::sin(i);
    row.data_wait = 0.02 + 0.01 * std::cos(i);
    row.comm_wait = 0.05;
    content.rows.push_back(row);
  }
  content.results = {{"AP", "0.494"}, {"AP50", "0.81"}};
  content.config = {{"epochs", "30"}, {"out", "a & b"}};
  content.notes = {"2 images could not be read"};
  return content;
}

TEST(Report, NeedsNothingBesideItself) {
  auto const html = report_html(example());
  for (auto const* outside : {"<script", "<link", "src=", "@import", "url("}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
  for (auto const* inside :
       {"runs/&lt;exp&gt;", "yolo11n", "a &amp; b", "AP50", "2 images could not be read",
        "Mean average precision", "Every epoch"}) {
    EXPECT_NE(html.find(inside), std::string::npos) << inside;
  }
}

TEST(Report, LeavesEmptyPartsOut) {
  auto const html = report_html({.title = "empty"});
  for (auto const* part : {"<svg", "Results", "Configuration", "To be noted", "nan"}) {
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  }
}

TEST(Report, IsWrittenBesideItsPicture) {
  testing::TemporaryFolder const folder;
  write_report(folder.path(), example());
  EXPECT_EQ(base::read_text_file(folder.path() / "report.html"), report_html(example()));
  auto const svg = folder.path() / "results.svg";
  EXPECT_EQ(base::read_text_file(svg), results_svg(example().rows));
  auto const parse =
      "python3 -c 'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' " + svg.string();
  if (testing::run_command("python3 -c 1").status != 0) GTEST_SKIP() << "skipped: no python3";
  auto const result = testing::run_command(parse);
  EXPECT_EQ(result.status, 0) << result.output;
}

}  // namespace
}  // namespace yolohpc::monitor
