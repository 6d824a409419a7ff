#include "yolohpc/data/shard_set.hpp"

#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "data/packed_set.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;
using testing::contents_of;
using testing::pack_settings;
using testing::some_pictures;
using testing::TemporaryFolder;

/// A set of 7 pictures in several shards.
class PackedSet : public ::testing::Test {
 protected:
  void SetUp() override {
    images_ = some_pictures(7);
    pack_images(testing::two_categories(), images_, pack_settings(path(), 1500));
    ASSERT_GE(shard_files().size(), 3u);
  }
  fs::path const& path() const { return folder_.path(); }
  std::vector<fs::path> shard_files() const {
    auto const files = ShardSet(path(), "train").files();
    return {files.begin() + 1, files.end()};
  }
  /// What opening or reading the set says; "fine" when nothing.
  std::string complaint() const {
    try {
      contents_of(ShardSet(path(), "train"));
    } catch (base::Error const& error) {
      EXPECT_EQ(error.code(), base::ExitCode::bad_data) << error.what();
      return error.what();
    }
    return "fine";
  }
  void expect_complaint(std::string const& part) const {
    EXPECT_NE(complaint().find(part), std::string::npos)
        << "no \"" << part << "\" in: " << complaint();
  }

  TemporaryFolder folder_;
  std::vector<PackImage> images_;
};

void flip_byte(fs::path const& file, std::uint64_t offset, char mask = 0x20) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  char const value = static_cast<char>(stream.get());
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.put(static_cast<char>(value ^ mask));
}

/// Place of `bytes` in a file.
std::uint64_t find_in(fs::path const& file, std::span<std::byte const> bytes) {
  auto const content = base::read_file(file);
  auto const found = std::search(content.begin(), content.end(), bytes.begin(), bytes.end());
  EXPECT_NE(found, content.end());
  return static_cast<std::uint64_t>(found - content.begin());
}

TEST_F(PackedSet, GivesBackWhatWasPacked) {
  ShardSet const set(path(), "train");
  ASSERT_EQ(set.size(), 7);
  EXPECT_EQ(set.split(), "train");
  ASSERT_EQ(set.categories().size(), 2u);
  EXPECT_EQ(set.categories()[0].id, 3);
  EXPECT_EQ(set.categories()[0].name, "früh");
  EXPECT_EQ(set.categories()[1].name, "late");
  for (std::int64_t i = 0; i < set.size(); ++i) {
    PackImage const& image = images_[static_cast<std::size_t>(i)];
    Record const record = set.record(i);
    EXPECT_EQ(record.image_id, image.id);
    EXPECT_EQ(record.file_name, image.file_name);
    EXPECT_EQ(record.width_px, 20 + i);
    EXPECT_EQ(record.height_px, 16 + 2 * i);
    EXPECT_EQ(record.format, i % 3 == 2 ? ImageFormat::jpeg : ImageFormat::png);
    EXPECT_EQ(record.orientation, 1);
    EXPECT_EQ(record.size_bytes, image.bytes.size());
    EXPECT_EQ(set.first_of_shard(record.shard) + record.index_in_shard, i);
    EXPECT_EQ(set.read_bytes(i), image.bytes);
    auto const annotations = set.annotations(i);
    ASSERT_EQ(annotations.size(), image.annotations.size());
    for (std::size_t k = 0; k < annotations.size(); ++k) {
      EXPECT_EQ(annotations[k].id, image.annotations[k].id);
      EXPECT_EQ(annotations[k].xywh_px, image.annotations[k].xywh_px);
      EXPECT_EQ(annotations[k].area, image.annotations[k].area);
      EXPECT_EQ(annotations[k].class_index, image.annotations[k].class_index);
      EXPECT_EQ(annotations[k].is_crowd, image.annotations[k].is_crowd);
    }
  }
  EXPECT_EQ(set.training_boxes(5).size(), 1u);  // the other one is a crowd
  EXPECT_EQ(set.first_of_shard(set.shard_count()), 7);
}

TEST_F(PackedSet, IsReadByManyThreadsAtOnce) {
  ShardSet const set(path(), "train");
  std::string const expected = contents_of(set);
  std::vector<std::string> seen(8);
  {
    std::vector<std::jthread> threads;
    for (auto& text : seen) {
      threads.emplace_back([&text, &set] {
        for (int pass = 0; pass < 5; ++pass) text = contents_of(set);
      });
    }
  }
  for (auto const& text : seen) EXPECT_EQ(text, expected);
}

// Several sets opened at once share the one HDF5 library.
TEST_F(PackedSet, IsOpenedByManyThreadsAtOnce) {
  std::string const expected = contents_of(ShardSet(path(), "train"));
  std::vector<std::string> seen(6);
  {
    std::vector<std::jthread> threads;
    for (auto& text : seen) {
      threads.emplace_back([&text, this] { text = contents_of(ShardSet(path(), "train")); });
    }
  }
  for (auto const& text : seen) EXPECT_EQ(text, expected);
}

// Case B10: a read-only folder, and another job that holds every shard locked.
TEST_F(PackedSet, NeedsNoLockAndNoRightToWrite) {
  auto const files = shard_files();
  std::vector<int> locked;
  for (auto const& file : files) {
    int const fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(fd, LOCK_EX | LOCK_NB), 0);
    locked.push_back(fd);
    fs::permissions(file, fs::perms(0444));
  }
  fs::permissions(path(), fs::perms(0555));
  auto const before = std::distance(fs::directory_iterator(path()), fs::directory_iterator());
  ::unsetenv("HDF5_USE_FILE_LOCKING");
  EXPECT_EQ(complaint(), "fine");
  EXPECT_TRUE(verify_split(path(), "train").empty());
  EXPECT_EQ(std::distance(fs::directory_iterator(path()), fs::directory_iterator()), before);
  fs::permissions(path(), fs::perms(0755));
  for (int const fd : locked) ::close(fd);
}

TEST_F(PackedSet, ADamagedImageIsNamedByShardAndRecord) {
  ShardSet const set(path(), "train");
  Record const record = set.record(4);
  fs::path const file = shard_files()[static_cast<std::size_t>(record.shard)];
  flip_byte(file, find_in(file, images_[4].bytes) + 40);
  std::string const words = base::join("shard ", record.shard, " of ", set.shard_count());
  std::string const place = base::join("record ", record.index_in_shard, " (image id 996");
  expect_complaint(words);
  expect_complaint(place);
  expect_complaint("CRC-32C");
  EXPECT_EQ(set.read_bytes(3), images_[3].bytes);  // the others are still good
  auto const faults = verify_split(path(), "train");
  ASSERT_EQ(faults.size(), 2u);  // the file, and the record
  EXPECT_NE(faults[1].find(words), std::string::npos) << faults[1];
  EXPECT_NE(faults[1].find(place), std::string::npos) << faults[1];
}

// Whatever byte changes: either a reader is told, or what it reads is what was packed; and the full
// check always tells.
TEST_F(PackedSet, NoFlippedBytePassesUnseen) {
  std::string const expected = contents_of(ShardSet(path(), "train"));
  fs::path const file = shard_files()[1];
  auto const size = fs::file_size(file);
  int told = 0;
  int checked = 0;
  for (std::uint64_t offset = 0; offset < size; offset += 31) {
    flip_byte(file, offset);
    EXPECT_FALSE(verify_split(path(), "train").empty()) << "byte " << offset;
    try {
      EXPECT_EQ(contents_of(ShardSet(path(), "train")), expected) << "byte " << offset;
    } catch (base::Error const&) {
      ++told;
    }
    ++checked;
    flip_byte(file, offset);
  }
  EXPECT_GT(told, checked / 2) << "of " << checked;
}

TEST_F(PackedSet, ACutShardIsRefusedAtOnce) {
  fs::path const file = shard_files()[1];
  fs::resize_file(file, fs::file_size(file) - 100);
  expect_complaint("shard 1 of ");
  expect_complaint("cut short");
  expect_complaint("length");
}

// The manifest may be copied from elsewhere; the shard itself must not be believed either.
TEST_F(PackedSet, ACutShardWithAMatchingManifestIsRefusedToo) {
  fs::path const file = shard_files()[1];
  auto const size = fs::file_size(file);
  fs::resize_file(file, size - 100);
  auto manifest = nlohmann::json::parse(base::read_text_file(path() / "train.json"));
  manifest["shards"][1]["bytes"] = size - 100;
  base::write_file_atomically(path() / "train.json", manifest.dump());
  expect_complaint("shard 1 of ");
}

TEST_F(PackedSet, AMissingShardIsNamed) {
  fs::remove(shard_files()[1]);
  expect_complaint("shard 1 of ");
  expect_complaint("is missing");
  EXPECT_EQ(verify_split(path(), "train").size(), 1u);
}

TEST_F(PackedSet, SwappedShardsAreNamed) {
  auto const files = shard_files();
  auto manifest = nlohmann::json::parse(base::read_text_file(path() / "train.json"));
  fs::rename(files[0], path() / "x");
  fs::rename(files[1], files[0]);
  fs::rename(path() / "x", files[1]);
  std::swap(manifest["shards"][0]["bytes"], manifest["shards"][1]["bytes"]);
  base::write_file_atomically(path() / "train.json", manifest.dump());
  expect_complaint("says of itself that it is shard 1");
}

TEST_F(PackedSet, AShardOfAnotherPackingIsNamed) {
  TemporaryFolder other;
  images_[0].annotations.push_back({.id = 1, .xywh_px = {0, 0, 5, 5}, .area = 25});
  pack_images(testing::two_categories(), images_, pack_settings(other.path(), 1500));
  auto const file = shard_files()[1];
  fs::copy_file(other.path() / file.filename(), file, fs::copy_options::overwrite_existing);
  expect_complaint("shard 1 of ");
  expect_complaint("belongs to another packing");
}

TEST_F(PackedSet, AnUnknownVersionIsRefusedWithBothNumbers) {
  std::string text = base::read_text_file(path() / "train.json");
  std::string const version = "\"format_version\": 1";
  text.replace(text.find(version), version.size(), "\"format_version\": 9");
  base::write_file_atomically(path() / "train.json", text);
  expect_complaint("format version 9, this program reads version 1");
}

TEST_F(PackedSet, WithoutItsManifestASplitDoesNotCount) {
  fs::remove(path() / "train.json");
  expect_complaint("packing did not finish");
  EXPECT_TRUE(packed_splits(path()).empty());
}

TEST_F(PackedSet, AnUnknownSplitIsAnsweredWithThoseThatExist) {
  try {
    ShardSet(path(), "val");
    FAIL() << "opened";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("there are: train"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(ShardSet(path() / "nowhere", "train"), base::Error);
}

// More category names than a small attribute holds (64 KiB).
TEST(ShardSet, HoldsThousandsOfCategories) {
  TemporaryFolder folder;
  std::vector<Category> categories;
  for (int i = 0; i < 3000; ++i)
    categories.push_back({2 * i + 1, std::string(40, 'x') + std::to_string(i)});
  auto images = some_pictures(2);
  images[1].annotations[0].class_index = 2999;
  pack_images(categories, images, pack_settings(folder.path()));
  ShardSet const set(folder.path(), "train");
  ASSERT_EQ(set.categories().size(), 3000u);
  EXPECT_EQ(set.categories()[2999].name, categories[2999].name);
  EXPECT_EQ(set.annotations(1)[0].class_index, 2999);
}

}  // namespace
}  // namespace yolohpc::data
