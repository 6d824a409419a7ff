// log.jsonl: fields of a line, cutting on resume, silence of other ranks, a failing disk.
#include "yolohpc/monitor/event_log.hpp"

#include <cmath>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "support/golden.hpp"

namespace yolohpc::monitor {
namespace {

using nlohmann::json;

std::vector<json> lines_of(std::filesystem::path const& file) {
  std::istringstream text(base::read_text_file(file));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(EventLine, HasTheFixedFieldsAndTheFreeOnes) {
  EXPECT_EQ(event_line("step", 1.5, 3, {2, 40},
                       {{"loss", 0.25},
                        {"ids", std::vector<std::int64_t>{7, 8}},
                        {"ok", true},
                        {"name", std::string("a\"b")}}),
            R"({"event":"step","time":1.5,"rank":3,"step":40,"epoch":2,"loss":0.25,"ids":[7,8],)"
            R"("ok":true,"name":"a\"b"})");
}

// JSON has no NaN; a line that no parser reads would be worse than a missing number.
TEST(EventLine, WritesNotFiniteAsNullAndBrokenTextAsText) {
  auto const line = event_line("e", 0, 0, {},
                               {{"loss", std::nan("")},
                                {"list", std::vector{1.0, HUGE_VAL}},
                                {"file", std::string("a\xff.jpg\n")}});
  auto const parsed = json::parse(line);
  EXPECT_TRUE(parsed.at("loss").is_null());
  EXPECT_TRUE(parsed.at("list").at(1).is_null());
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(EventLog, CutsWhatComesAfterTheResumedStepAndTornLines) {
  testing::TemporaryFolder const folder;
  auto const file = folder.path() / "log.jsonl";
  {
    EventLog log({.file = file});
    for (int step = 1; step <= 5; ++step) log.write("step", {0, step});
  }
  base::write_file_atomically(file, base::read_text_file(file) + R"({"event":"step","step":3)");
  {
    EventLog log({.file = file, .resumed_step = 3});
    log.write("resume", {0, 3});
    log.write("step", {0, 4});
  }
  auto const lines = lines_of(file);
  ASSERT_EQ(lines.size(), 5);
  EXPECT_EQ(lines[2].at("step"), 3);
  EXPECT_EQ(lines[3].at("event"), "resume");
  EXPECT_EQ(lines[4].at("step"), 4);
}

TEST(EventLog, BeginsAnewWithoutAResume) {
  testing::TemporaryFolder const folder;
  auto const file = folder.path() / "log.jsonl";
  EventLog({.file = file}).write("first", {});
  EventLog({.file = file}).write("second", {});
  auto const lines = lines_of(file);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(lines[0].at("event"), "second");
  EXPECT_GT(lines[0].at("time"), 1.6e9);  // seconds since 1970
}

TEST(EventLog, IsSilentOnOtherRanks) {
  testing::TemporaryFolder const folder;
  auto const file = folder.path() / "log.jsonl";
  EventLog({.file = file, .rank = 1}).write("step", {});
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(EventLog, KeepsLinesWholeWithManyThreads) {
  testing::TemporaryFolder const folder;
  auto const file = folder.path() / "log.jsonl";
  {
    EventLog log({.file = file});
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < 200; ++i) log.write("x", {t, i}, {{"pad", std::string(50, 'x')}});
      });
    }
  }
  EXPECT_EQ(lines_of(file).size(), 800);
}

TEST(EventLog, AFullDiskIsReportedAndDoesNotThrow) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "skipped: no /dev/full";
  EventLog log({.file = "/dev/full"});
  EXPECT_NO_THROW(log.write("step", {0, 17}));
  EXPECT_NE(log.failure().find("/dev/full"), std::string::npos);
  EXPECT_NE(log.failure().find("No space"), std::string::npos);
  EXPECT_NE(log.failure().find("17"), std::string::npos);
}

TEST(EventLog, NamesAFileThatCannotBeOpened) {
  try {
    EventLog log({.file = "/nowhere/log.jsonl"});
    FAIL();
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/log.jsonl"), std::string::npos);
  }
}

}  // namespace
}  // namespace yolohpc::monitor
