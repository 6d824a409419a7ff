#include "yolohpc/train/stop.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"

namespace yolohpc::train {
namespace {

TEST(WalltimeEnd, ReadsTheUsualForms) {
  EXPECT_DOUBLE_EQ(*walltime_end_s("90", {}, 1000), 1090);
  EXPECT_DOUBLE_EQ(*walltime_end_s("2:30", {}, 1000), 1150);
  EXPECT_DOUBLE_EQ(*walltime_end_s("1:00:05", {}, 0), 3605);
  EXPECT_DOUBLE_EQ(*walltime_end_s("2-01:00:00", {}, 0), 2 * 86400 + 3600);
  for (auto const* text : {"", "soon", "1:2:3:4", "1:-2", "1-", "1:x"}) {
    EXPECT_THROW(walltime_end_s(text, {}, 0), base::Error) << text;
  }
}

TEST(WalltimeEnd, AsksTheScheduler) {
  EXPECT_FALSE(walltime_end_s("auto", {}, 0).has_value());
  EXPECT_DOUBLE_EQ(*walltime_end_s("auto", {{"SLURM_JOB_END_TIME", "1700000000"}}, 5), 1700000000);
  EXPECT_DOUBLE_EQ(*walltime_end_s("auto", {{"PBS_WALLTIME", "3600"}}, 5), 3605);
  EXPECT_FALSE(walltime_end_s("auto", {{"SLURM_JOB_END_TIME", "tomorrow"}}, 5).has_value());
}

TEST(StopWatch, NamesTheSignalOrTheLimit) {
  StopSignals signals;
  StopWatch quiet({}, signals);
  EXPECT_EQ(quiet.reason(), "");
  StopWatch late({.end_s = base::wall_clock_s() + 100, .margin_s = 120}, signals);
  EXPECT_NE(late.reason().find("wall-clock"), std::string::npos);
  StopWatch early({.end_s = base::wall_clock_s() + 1000, .margin_s = 120}, signals);
  EXPECT_EQ(early.reason(), "");
  early.note_duration(900);  // a step or a save that takes so long would not fit any more
  EXPECT_NE(early.reason(), "");
  std::raise(SIGUSR1);
  EXPECT_EQ(signals.received(), SIGUSR1);
  EXPECT_NE(quiet.reason().find("signal 10"), std::string::npos) << quiet.reason();
}

}  // namespace
}  // namespace yolohpc::train
