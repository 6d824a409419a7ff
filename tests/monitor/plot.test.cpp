// Plots: round ticks, coordinates of a known curve, gaps, and text that must not break the file.
#include "yolohpc/monitor/plot.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace yolohpc::monitor {
namespace {

void expect_ticks(std::vector<double> const& got, std::vector<double> const& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12);
}

TEST(Ticks, AreRoundAndCoverTheRange) {
  expect_ticks(ticks(0, 1, 5), {0, 0.2, 0.4, 0.6, 0.8, 1});
  expect_ticks(ticks(0, 0.83, 5), {0, 0.2, 0.4, 0.6, 0.8, 1});
  expect_ticks(ticks(-3, 17, 4), {-5, 0, 5, 10, 15, 20});
  expect_ticks(ticks(2, 2, 4), {1, 1.5, 2, 2.5, 3});
  EXPECT_GE(ticks(0, 0, 4).size(), 2);
}

TEST(Ticks, StayFewForAnyRange) {
  for (double high = 1e-9; high < 1e9; high *= 1.37) {
    auto const all = ticks(0, high, 5);
    EXPECT_LE(all.size(), 7) << high;
    EXPECT_GE(all.back(), high * (1 - 1e-9)) << high;
  }
}

// x from 0 to 10 spans 64 to 442; y from 0 to 1 spans 254 to 58 (downwards).
TEST(PlotSvg, PutsPointsWhereTheAxesSay) {
  auto const svg =
      plot_svg({.title = "t", .series = {{.label = "a", .x = {0, 5, 10}, .y = {0, 0.5, 1}}}});
  EXPECT_NE(svg.find("d=\"M64.0 254.0L253.0 156.0L442.0 58.0\""), std::string::npos) << svg;
}

TEST(PlotSvg, BreaksTheLineAtAMissingValue) {
  auto const svg =
      plot_svg({.series = {{.label = "a", .x = {0, 1, 2, 3, 4}, .y = {0, 1, std::nan(""), 1, 0}}}});
  EXPECT_NE(svg.find("d=\"M64.0 254.0L158.5 58.0M347.5 58.0L442.0 254.0\""), std::string::npos)
      << svg;
}

TEST(PlotSvg, NeverWritesNanNorRawReservedLetters) {
  double const nan = std::nan("");
  for (auto const& series : std::vector<Series>{{.label = "<a&b>", .x = {}, .y = {}},
                                                {.label = "\"", .x = {1}, .y = {nan}},
                                                {.label = "'", .x = {1}, .y = {3}},
                                                {.label = "c", .x = {1, 2}, .y = {INFINITY, 4}}}) {
    auto const svg = plot_svg({.title = "<title>", .series = {series}});
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    EXPECT_EQ(svg.find("<a&"), std::string::npos);
    EXPECT_NE(svg.find("&lt;title&gt;"), std::string::npos);
  }
  EXPECT_NE(plot_svg({}).find("no data"), std::string::npos);
}

TEST(PlotGrid, HasRoomForAllPlots) {
  auto const svg = plot_grid_svg(std::vector<Plot>(5), 3);
  EXPECT_NE(svg.find("viewBox=\"0 0 1380 600\""), std::string::npos);
}

}  // namespace
}  // namespace yolohpc::monitor
