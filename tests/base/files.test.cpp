#include "yolohpc/base/files.hpp"

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::base {
namespace {

TEST(Files, ReplacesAFileAndLeavesNoTemporary) {
  testing::TemporaryFolder folder;
  auto const path = folder.path() / "a.txt";
  write_file_atomically(path, "one");
  write_file_atomically(path, "two");
  EXPECT_EQ(read_text_file(path), "two");
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".tmp"));
}

TEST(Files, AFailedWriteNamesPathAndReasonAndKeepsWhatWasThere) {
  testing::TemporaryFolder folder;
  auto const path = folder.path() / "busy";
  std::filesystem::create_directories(path /
                                      "inside");  // rename over a folder that is not empty fails
  try {
    write_file_atomically(path, "x");
    FAIL() << "a folder was replaced";
  } catch (Error const& error) {
    std::string const text = error.what();
    EXPECT_NE(text.find(path.string()), std::string::npos) << text;
    EXPECT_NE(text.find("rename"), std::string::npos) << text;
  }
  EXPECT_TRUE(std::filesystem::exists(path / "inside"));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".tmp"));
  EXPECT_THROW(write_file_atomically(folder.path() / "no" / "such", "x"), Error);
}

TEST(Files, ReadingAFolderOrNothingIsAnError) {
  testing::TemporaryFolder folder;
  EXPECT_THROW(read_file(folder.path()), Error);
  EXPECT_THROW(read_file(folder.path() / "missing"), Error);
}

}  // namespace
}  // namespace yolohpc::base
