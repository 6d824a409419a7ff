// results.csv: the contract's header, one row per epoch, cutting on resume, torn lines.
#include "yolohpc/monitor/results_csv.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "support/golden.hpp"

namespace yolohpc::monitor {
namespace {

EpochRow row_of(std::int64_t epoch) {
  EpochRow row{.epoch = epoch, .time_s = 10.0 * static_cast<double>(epoch)};
  row.train_box_loss = 1.25;
  row.lr_pg0 = 1.5e-5;
  row.map50 = 0.5;
  return row;
}

std::string text_of(std::filesystem::path const& file) {
  return base::read_text_file(file);
}

// The text of the contract, not of the code.
TEST(ResultsCsv, BeginsWithTheColumnsOfOtherTrainers) {
  std::string const contract =
      "epoch,time,train/box_loss,train/cls_loss,train/dfl_loss,metrics/precision(B),"
      "metrics/recall(B),metrics/mAP50(B),metrics/mAP50-95(B),val/box_loss,val/cls_loss,val/"
      "dfl_loss,"
      "lr/pg0,lr/pg1,lr/pg2";
  EXPECT_TRUE(results_header().starts_with(contract + ",coco/AP,coco/AP50,"));
}

TEST(ResultsCsv, WritesARowWithEmptyFieldsForWhatDoesNotExist) {
  EpochRow row = row_of(7);
  row.precision = std::numeric_limits<double>::quiet_NaN();
  row.steps = 1234567890;
  EXPECT_TRUE(results_row(row).starts_with("7,70.000,1.25,0,0,,0,0.5,0,0,0,0,1.5e-05,0,0,"));
  EXPECT_NE(results_row(row).find(",1234567890,"), std::string::npos);
  auto const again = parse_results_row(results_row(row));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->epoch, 7);
  EXPECT_EQ(again->lr_pg0, 1.5e-5);
  EXPECT_TRUE(std::isnan(again->precision));
  EXPECT_EQ(again->steps, 1234567890);
  EXPECT_EQ(results_row(*again), results_row(row));
}

TEST(ResultsCsv, RefusesRowsThatAreNotWhole) {
  auto const whole = results_row(row_of(1));
  EXPECT_TRUE(parse_results_row(whole));
  EXPECT_FALSE(parse_results_row(whole + ",1"));
  EXPECT_FALSE(parse_results_row(whole.substr(0, whole.rfind(','))));
  EXPECT_FALSE(parse_results_row("x" + whole));
  EXPECT_FALSE(parse_results_row(""));
}

TEST(ResultsCsv, AppendsBehindOneHeader) {
  testing::TemporaryFolder const folder;
  auto const file = folder.path() / "results.csv";
  ResultsCsv csv({.file = file});
  csv.append(row_of(1));
  csv.append(row_of(2));
  EXPECT_EQ(text_of(file), results_header() + '\n' + results_row(row_of(1)) + '\n' +
                               results_row(row_of(2)) + '\n');
  EXPECT_EQ(csv.rows().size(), 2);
  EXPECT_THROW(csv.append(row_of(2)), base::Error);
}

TEST(ResultsCsv, CutsRowsAfterTheResumedEpoch) {
  testing::TemporaryFolder const folder;
  auto const file = folder.path() / "results.csv";
  {
    ResultsCsv csv({.file = file});
    for (int epoch = 1; epoch <= 5; ++epoch) csv.append(row_of(epoch));
  }
  auto const before = text_of(file);
  ResultsCsv csv({.file = file, .resumed_epoch = 3});
  ASSERT_EQ(csv.rows().size(), 3);
  csv.append(row_of(4));
  csv.append(row_of(5));
  EXPECT_EQ(text_of(file), before);
}

// A number may be cut in the middle and still look like one: 123.4 of 123.456.
TEST(ResultsCsv, DropsATornLastLine) {
  testing::TemporaryFolder const folder;
  auto const file = folder.path() / "results.csv";
  auto const whole = results_header() + '\n' + results_row(row_of(1)) + '\n';
  for (std::size_t cut : {1, 2, 10, 60}) {
    auto const next = results_row(row_of(2)) + '\n';
    base::write_file_atomically(file, whole + next.substr(0, next.size() - cut));
    ResultsCsv csv({.file = file, .resumed_epoch = 9});
    EXPECT_EQ(csv.rows().size(), 1) << cut;
    EXPECT_EQ(text_of(file), whole);
  }
}

TEST(ResultsCsv, ResumesWithoutAFileAndBeginsAnewWithoutAResume) {
  testing::TemporaryFolder const folder;
  auto const file = folder.path() / "results.csv";
  EXPECT_TRUE(ResultsCsv({.file = file, .resumed_epoch = 3}).rows().empty());
  ResultsCsv({.file = file}).append(row_of(1));
  EXPECT_TRUE(ResultsCsv({.file = file}).rows().empty());
  EXPECT_EQ(text_of(file), results_header() + '\n');
}

TEST(ResultsCsv, RefusesAForeignFileOnResume) {
  testing::TemporaryFolder const folder;
  auto const file = folder.path() / "results.csv";
  base::write_file_atomically(file, "epoch,loss\n1,2\n");
  try {
    ResultsCsv csv({.file = file, .resumed_epoch = 1});
    FAIL();
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("epoch,loss"), std::string::npos);
  }
}

}  // namespace
}  // namespace yolohpc::monitor
