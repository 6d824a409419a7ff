// Phase timers against a clock that the test moves, and the memory readers.
#include "yolohpc/monitor/timers.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace yolohpc::monitor {
namespace {

double test_now_s = 0;
double test_clock() {
  return test_now_s;
}

TEST(PhaseTimers, KeepIntervalAndTotalApart) {
  test_now_s = 100;
  PhaseTimers timers(test_clock);
  {
    auto const scope = timers.measure(Phase::data_wait);
    test_now_s += 2;
  }
  {
    auto const scope = timers.measure(Phase::forward);
    test_now_s += 5;
  }
  test_now_s += 1;
  timers.count_step(16);
  auto const first = timers.take_interval();
  EXPECT_EQ(first[Phase::data_wait], 2);
  EXPECT_EQ(first[Phase::forward], 5);
  EXPECT_EQ(first.elapsed_s, 8);
  EXPECT_EQ(first.share(Phase::data_wait), 0.25);
  EXPECT_EQ(first.images_per_s(), 2);
  EXPECT_EQ(first.step_ms(), 8000);

  timers.add(Phase::comm_wait, 0.5);
  timers.count_step(16);
  test_now_s += 2;
  auto const second = timers.take_interval();
  EXPECT_EQ(second[Phase::data_wait], 0);
  EXPECT_EQ(second[Phase::comm_wait], 0.5);
  EXPECT_EQ(second.elapsed_s, 2);
  EXPECT_EQ(second.steps, 1);
  auto const total = timers.total();
  EXPECT_EQ(total[Phase::data_wait], 2);
  EXPECT_EQ(total[Phase::comm_wait], 0.5);
  EXPECT_EQ(total.elapsed_s, 10);
  EXPECT_EQ(total.steps, 2);
  EXPECT_EQ(total.images, 32);

  timers.restart();
  EXPECT_EQ(timers.total().elapsed_s, 0);
  EXPECT_EQ(timers.total()[Phase::data_wait], 0);
}

TEST(PhaseTimes, AddUpAndDivideByNothingSafely) {
  PhaseTimes sum;
  EXPECT_EQ(sum.share(Phase::forward), 0);
  EXPECT_EQ(sum.images_per_s(), 0);
  EXPECT_EQ(sum.step_ms(), 0);
  PhaseTimes part{.steps = 1, .images = 4, .elapsed_s = 2};
  part.seconds[static_cast<std::size_t>(Phase::optimizer)] = 1;
  sum += part;
  sum += part;
  EXPECT_EQ(sum[Phase::optimizer], 2);
  EXPECT_EQ(sum.images_per_s(), 2);
}

TEST(PhaseName, FitsThePhase) {
  EXPECT_EQ(phase_name(Phase::data_wait), "data_wait");
  EXPECT_EQ(phase_name(Phase::comm_wait), "comm_wait");
  EXPECT_EQ(phase_name(Phase::other), "other");
}

// 64 MiB that are written to must show, in both readers.
TEST(Memory, GrowsWithWhatIsTouched) {
  double const before_mib = resident_memory_mib();
  std::vector<char> const block(64 << 20, 1);
  double const grown_mib = resident_memory_mib() - before_mib;
  EXPECT_GT(before_mib, 0);
  EXPECT_GE(grown_mib, 60);
  EXPECT_LE(grown_mib, 80);
  EXPECT_GE(peak_memory_mib(), before_mib + 60);
  EXPECT_EQ(block[1], 1);
}

}  // namespace
}  // namespace yolohpc::monitor
