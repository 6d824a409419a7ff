// The progress line: its text, when it is printed, and what a terminal gets.
#include "yolohpc/monitor/progress.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace yolohpc::monitor {
namespace {

double test_now_s = 0;
double test_clock() {
  return test_now_s;
}

ProgressState state_at(std::int64_t step) {
  return {.epoch = 3,
          .epochs = 100,
          .step = step,
          .steps = 40,
          .losses = {{"box", 1.234}, {"cls", 2.5}},
          .images_per_s = 123.4,
          .data_wait = 0.034,
          .eta_s = 3723};
}

// Collects what Progress prints.
class Output {
 public:
  Output() : file_(std::tmpfile()) {}
  Output(Output const&) = delete;
  Output& operator=(Output const&) = delete;
  ~Output() { std::fclose(file_); }
  std::FILE* file() const { return file_; }
  std::string text() const {
    std::string result(static_cast<std::size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    auto const count = std::fread(result.data(), 1, result.size(), file_);
    result.resize(count);
    return result;
  }

 private:
  std::FILE* file_;
};

TEST(ProgressText, NamesEverything) {
  EXPECT_EQ(progress_text(state_at(12)),
            "epoch 3/100  step 12/40  box 1.234 cls 2.500  123 img/s  data wait 3 %  ETA 1:02:03");
}

TEST(ProgressBar, IsFilledByTheStepAndCutToTheTerminal) {
  EXPECT_TRUE(progress_bar(state_at(10), 200)
                  .starts_with("epoch 3/100 [=====               ] 10/40  box 1.234"));
  EXPECT_EQ(progress_bar(state_at(10), 30).size(), 29);
}

TEST(DurationText, ChoosesItsUnits) {
  EXPECT_EQ(duration_text(42.4), "42 s");
  EXPECT_EQ(duration_text(187), "3:07");
  EXPECT_EQ(duration_text(3599.6), "1:00:00");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(2 * 86400 + 3 * 3600 + 240), "2 d 03:04");
  EXPECT_EQ(duration_text(-1), "-");
  EXPECT_EQ(duration_text(std::nan("")), "-");
}

// 97 epochs of 40 steps and 28 steps of this one, at half a second; 98 validations of 2 s.
TEST(EstimateRemaining, CountsStepsAndValidations) {
  EXPECT_DOUBLE_EQ(estimate_remaining_s(state_at(12), 0.5, 2), (97 * 40 + 28) * 0.5 + 98 * 2);
}

TEST(Progress, PrintsOneLinePerIntervalInABatchLog) {
  Output const out;
  test_now_s = 0;
  Progress progress({.interval_s = 10, .out = out.file(), .clock = test_clock});
  for (int step = 1; step <= 40; ++step, test_now_s += 1) progress.update(state_at(step));
  // Seconds 0, 10, 20, 30, and the end of the epoch.
  std::string expected;
  for (int const step : {1, 11, 21, 31, 40}) expected += progress_text(state_at(step)) + '\n';
  EXPECT_EQ(out.text(), expected);
}

TEST(Progress, RedrawsABarAndClearsItForALine) {
  Output const out;
  test_now_s = 0;
  Progress progress({.style = Progress::Style::bar, .out = out.file(), .clock = test_clock});
  progress.update(state_at(1));
  test_now_s += 0.1;
  EXPECT_FALSE(progress.is_due());
  progress.update(state_at(2));
  progress.line("epoch done");
  progress.line("more");
  auto const text = out.text();
  EXPECT_TRUE(text.starts_with("\repoch 3/100 ["));
  EXPECT_EQ(text.find("2/40"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\033[K\r\033[Kepoch done\nmore\n"));
}

TEST(Progress, IsSilentOnOtherRanks) {
  Output const out;
  Progress progress({.is_root = false, .style = Progress::Style::lines, .out = out.file()});
  EXPECT_FALSE(progress.is_due());
  progress.update(state_at(40));
  progress.line("x");
  EXPECT_EQ(out.text(), "");
}

}  // namespace
}  // namespace yolohpc::monitor
