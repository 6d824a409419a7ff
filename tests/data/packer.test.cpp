#include "yolohpc/data/packer.hpp"

#include <barrier>
#include <fstream>
#include <map>
#include <new>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "data/packed_set.hpp"
#include "sha256.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;
using testing::contents_of;
using testing::pack_settings;
using testing::some_pictures;
using testing::TemporaryFolder;
using testing::two_categories;

/// Ranks as threads of one process.
class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : parts_(static_cast<std::size_t>(size)), barrier_(size) {}

  RankGroup group(int rank) {
    return {.rank = rank,
            .size = static_cast<int>(parts_.size()),
            .all_gather = [this, rank](auto bytes) {
              parts_[static_cast<std::size_t>(rank)].assign(bytes.begin(), bytes.end());
              barrier_.arrive_and_wait();
              auto const all = parts_;
              barrier_.arrive_and_wait();
              return all;
            }};
  }

 private:
  std::vector<std::vector<std::byte>> parts_;
  std::barrier<> barrier_;
};

/// What each rank ended with: a report, or the text of its Error.
struct Outcome {
  PackReport report;
  std::string error;
};

using RankWork = std::function<PackReport(RankGroup const&)>;

std::vector<Outcome> on_ranks(int size, RankWork const& work) {
  ThreadRanks ranks(size);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto& outcome = outcomes[static_cast<std::size_t>(rank)];
      try {
        outcome.report = work(ranks.group(rank));
      } catch (base::Error const& error) {
        outcome.error = error.what();
      }
    });
  }
  threads.clear();
  return outcomes;
}

LabelSource source_of(std::vector<PackImage> const& images) {
  LabelSource source;
  source.categories = two_categories();
  source.first_annotation.push_back(0);
  for (PackImage const& image : images) {
    source.images.push_back({.id = image.id, .file_name = image.file_name});
    source.annotations.insert(source.annotations.end(), image.annotations.begin(),
                              image.annotations.end());
    source.first_annotation.push_back(source.annotations.size());
  }
  return source;
}

std::map<std::string, std::string> files_in(fs::path const& folder) {
  std::map<std::string, std::string> files;
  if (!fs::exists(folder)) return files;
  for (auto const& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = base::read_text_file(entry.path());
  }
  return files;
}

TEST(Packer, WritesTheSameBytesForAnyNumberOfRanksAndThreads) {
  auto const images = some_pictures(11);
  auto const source = source_of(images);
  std::map<std::string, std::string> first;
  for (int size : {1, 2, 3, 5, 16}) {
    TemporaryFolder folder;
    auto settings = pack_settings(folder.path(), 2000);
    settings.threads = size % 3 + 1;
    settings.cache_bytes = size == 3 ? 0 : 1 << 20;
    auto const outcomes = on_ranks(size, [&](RankGroup const& group) {
      auto const own = read_on_root(group, [&source] { return source; });
      return pack(
          own, [&images](std::size_t i) { return images[i].bytes; }, settings, group);
    });
    for (auto const& outcome : outcomes) {
      EXPECT_EQ(outcome.error, "");
      EXPECT_TRUE(outcome.report.packed);
      EXPECT_EQ(to_json(outcome.report), to_json(outcomes[0].report));
    }
    auto const files = files_in(folder.path());
    EXPECT_GT(files.size(), 3u);
    if (first.empty()) first = files;
    EXPECT_EQ(files, first) << size << " ranks";
  }
}

TEST(Packer, TheDigestIsThatOfTheContent) {
  auto images = some_pictures(6);
  auto const digest_of = [&images](std::int64_t shard_bytes) {
    TemporaryFolder folder;
    return pack_images(two_categories(), images, pack_settings(folder.path(), shard_bytes)).digest;
  };
  std::string const digest = digest_of(1 << 20);
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_EQ(digest_of(1000), digest);
  images[1].annotations[0].area += 1;
  EXPECT_NE(digest_of(1 << 20), digest);
  images[1].annotations[0].area -= 1;
  std::swap(images[0], images[1]);
  EXPECT_NE(digest_of(1 << 20), digest);
  std::swap(images[0], images[1]);
  images[0].bytes = testing::png_bytes(testing::smooth_picture(20, 16, 77));
  EXPECT_NE(digest_of(1 << 20), digest);
}

TEST(Packer, ShardsKeepToTheirLimit) {
  auto const images = some_pictures(9);
  TemporaryFolder folder;
  auto const report = pack_images(two_categories(), images, pack_settings(folder.path(), 1200));
  ShardSet const set(folder.path(), "train");
  EXPECT_EQ(report.shards, set.shard_count());
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(set.shard_count()));
  std::vector<int> count(bytes.size());
  for (std::int64_t i = 0; i < set.size(); ++i) {
    bytes[static_cast<std::size_t>(set.record(i).shard)] += set.record(i).size_bytes;
    ++count[static_cast<std::size_t>(set.record(i).shard)];
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_TRUE(bytes[i] <= 1200 || count[i] == 1) << "shard " << i << " has " << bytes[i];
    EXPECT_GT(count[i], 0);
  }
}

TEST(Packer, CollectsAllFaultsBeforeItWritesAnything) {
  auto images = some_pictures(6);
  images[1].bytes.resize(images[1].bytes.size() / 2);
  images[3].bytes = testing::bytes_of("a text");
  images[4].bytes.clear();
  TemporaryFolder folder;
  auto settings = pack_settings(folder.path() / "out");
  auto const refused = pack_images(two_categories(), images, settings);
  EXPECT_FALSE(refused.packed);
  EXPECT_EQ(refused.images, 0);
  ASSERT_EQ(refused.skipped.size(), 3u);
  EXPECT_EQ(refused.skipped[0].file, images[1].file_name);
  EXPECT_EQ(refused.skipped[0].reason.rfind("truncated", 0), 0u) << refused.skipped[0].reason;
  EXPECT_EQ(refused.skipped[1].file, images[3].file_name);
  EXPECT_EQ(refused.skipped[2].reason, "empty file");
  EXPECT_FALSE(fs::exists(settings.out));

  settings.skip_bad = true;
  auto const packed = pack_images(two_categories(), images, settings);
  EXPECT_TRUE(packed.packed);
  EXPECT_EQ(packed.images, 3);
  EXPECT_EQ(packed.skipped.size(), 3u);
  ShardSet const set(settings.out, "train");
  ASSERT_EQ(set.size(), 3);
  EXPECT_EQ(set.record(1).image_id, images[2].id);
  EXPECT_EQ(set.read_bytes(2), images[5].bytes);
}

TEST(Packer, RefusesASetOfWhichNothingIsLeft) {
  auto images = some_pictures(1);
  images[0].bytes.clear();
  TemporaryFolder folder;
  auto settings = pack_settings(folder.path());
  settings.skip_bad = true;
  EXPECT_FALSE(pack_images(two_categories(), images, settings).packed);
  EXPECT_TRUE(files_in(folder.path()).empty());
}

TEST(Packer, TurnsAPictureWhenItsLabelsSayTheTurnedSize) {
  std::vector<PackImage> images{
      {.id = 1,
       .file_name = "a",
       .bytes = testing::jpeg_bytes(testing::smooth_picture(40, 30, 1), 6),
       .annotations = {}}};
  auto source = source_of(images);
  auto const orientation_for = [&](int width, int height) {
    source.images[0].width_px = width;
    source.images[0].height_px = height;
    TemporaryFolder folder;
    auto const report = pack(
        source, [&images](std::size_t i) { return images[i].bytes; }, pack_settings(folder.path()),
        lone_rank());
    if (!report.packed) return report.skipped[0].kind;
    ShardSet const set(folder.path(), "train");
    Record const record = set.record(0);
    return base::join(record.width_px, 'x', record.height_px, " turn ", record.orientation);
  };
  EXPECT_EQ(orientation_for(30, 40), "30x40 turn 6");
  EXPECT_EQ(orientation_for(40, 30), "40x30 turn 1");
  EXPECT_EQ(orientation_for(0, 0), "30x40 turn 6");
  EXPECT_EQ(orientation_for(31, 40), "image_size_mismatch");
}

TEST(Packer, AFaultOfOneRankEndsAllAndLeavesNothing) {
  auto const images = some_pictures(9);
  auto const source = source_of(images);
  TemporaryFolder folder;
  auto const settings = pack_settings(folder.path() / "out", 1000);
  auto const outcomes = on_ranks(3, [&](RankGroup const& group) {
    auto own = settings;
    own.cache_bytes = 0;
    own.on_progress = [rank = group.rank](PackProgress const& progress) {
      if (rank == 1 && std::string(progress.phase) == "writing shards") throw std::bad_alloc();
    };
    return pack(
        source, [&images](std::size_t i) { return images[i].bytes; }, own, group);
  });
  for (auto const& outcome : outcomes) {
    EXPECT_NE(outcome.error.find("rank 1"), std::string::npos) << outcome.error;
  }
  EXPECT_TRUE(files_in(settings.out).empty());
}

TEST(Packer, AFileThatChangesMeanwhileIsNoticed) {
  auto images = some_pictures(4);
  auto const source = source_of(images);
  TemporaryFolder folder;
  auto settings = pack_settings(folder.path());
  settings.cache_bytes = 0;
  settings.on_progress = [&images](PackProgress const& progress) {
    if (std::string(progress.phase) == "writing shards") images[2].bytes[50] ^= std::byte{1};
  };
  auto const outcomes = on_ranks(1, [&](RankGroup const& group) {
    return pack(
        source, [&images](std::size_t i) { return images[i].bytes; }, settings, group);
  });
  EXPECT_NE(outcomes[0].error.find("has changed since it was checked"), std::string::npos)
      << outcomes[0].error;
  EXPECT_TRUE(files_in(folder.path()).empty());
}

TEST(Packer, EachImageIsReadOnceWhenMemoryAllows) {
  auto const images = some_pictures(8);
  auto const source = source_of(images);
  TemporaryFolder folder;
  std::atomic<int> reads{0};
  pack(
      source,
      [&](std::size_t i) {
        ++reads;
        return images[i].bytes;
      },
      pack_settings(folder.path()), lone_rank());
  EXPECT_EQ(reads, 8);
}

TEST(Packer, ReplacesASplitOnlyWhenAsked) {
  TemporaryFolder folder;
  auto settings = pack_settings(folder.path(), 1000);
  pack_images(two_categories(), some_pictures(9), settings);
  auto const before = files_in(folder.path());
  try {
    pack_images(two_categories(), some_pictures(3), settings);
    FAIL() << "replaced";
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("--overwrite"), std::string::npos) << error.what();
  }
  EXPECT_EQ(files_in(folder.path()), before);

  // What a killed run leaves behind goes too; other splits stay.
  base::write_file_atomically(folder.path() / "train-00000-of-00099.h5", "stray");
  settings.split = "val";
  pack_images(two_categories(), some_pictures(2), settings);
  settings.split = "train";
  settings.overwrite = true;
  settings.shard_bytes = 1 << 20;
  pack_images(two_categories(), some_pictures(3), settings);
  std::set<std::string> names;
  for (auto const& [name, bytes] : files_in(folder.path())) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"train-00000-of-00001.h5", "train.json",
                                          "val-00000-of-00001.h5", "val.json"}));
  EXPECT_EQ(ShardSet(folder.path(), "train").size(), 3);
}

TEST(Packer, NeverReplacesAFileThatIsNoManifest) {
  TemporaryFolder folder;
  base::write_file_atomically(folder.path() / "train.json", "{\"images\":[]}");
  auto settings = pack_settings(folder.path());
  settings.overwrite = true;
  EXPECT_THROW(pack_images(two_categories(), some_pictures(2), settings), base::Error);
  EXPECT_EQ(base::read_text_file(folder.path() / "train.json"), "{\"images\":[]}");
}

TEST(Packer, RefusesNamesThatLeaveTheFolder) {
  TemporaryFolder folder;
  auto settings = pack_settings(folder.path());
  for (char const* name : {"", "../x", ".hidden", "a/b", "a b"}) {
    settings.split = name;
    EXPECT_THROW(pack_images(two_categories(), some_pictures(1), settings), base::Error) << name;
  }
}

TEST(Packer, AFolderThatCannotBeMadeIsAnErrorOnAllRanks) {
  TemporaryFolder folder;
  base::write_file_atomically(folder.path() / "file", "x");
  auto const images = some_pictures(4);
  auto const source = source_of(images);
  auto const outcomes = on_ranks(2, [&](RankGroup const& group) {
    return pack(
        source, [&images](std::size_t i) { return images[i].bytes; },
        pack_settings(folder.path() / "file" / "out"), group);
  });
  for (auto const& outcome : outcomes) EXPECT_NE(outcome.error, "");
}

TEST(Packer, WhatRankZeroCannotReadIsAnErrorOnAllRanks) {
  auto const outcomes = on_ranks(3, [](RankGroup const& group) {
    read_on_root(group, [] { return read_coco_json("/nowhere/x.json", "/nowhere"); });
    return PackReport{};
  });
  for (auto const& outcome : outcomes) {
    EXPECT_NE(outcome.error.find("/nowhere/x.json"), std::string::npos) << outcome.error;
  }
}

// FIPS 180-4 examples, and lengths around a block against one call.
TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(hex_of(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of(sha256(testing::bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      hex_of(sha256(testing::bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  std::vector<std::byte> const million(1000000, std::byte{'a'});
  EXPECT_EQ(hex_of(sha256(million)),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  for (std::size_t cut : {1, 55, 56, 63, 64, 65, 127, 999}) {
    Sha256 hash;
    hash.update(std::span(million).first(cut));
    hash.update(std::span(million).subspan(cut));
    EXPECT_EQ(hash.finish(), sha256(million)) << cut;
  }
}

}  // namespace
}  // namespace yolohpc::data
