#include "yolohpc/data/sample_source.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"
#include "yolohpc/data/loader.hpp"

#include "data/packed_set.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;

class PackedLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    images_ = testing::some_pictures(7);
    pack_images(testing::two_categories(), images_, testing::pack_settings(folder_.path(), 1500));
  }

  /// Changes one byte in the middle of a packed picture.
  void damage(std::size_t index) const {
    auto const& bytes = images_[index].bytes;
    for (auto const& file : fs::directory_iterator(folder_.path())) {
      auto content = base::read_file(file.path());
      auto const found = std::search(content.begin(), content.end(), bytes.begin(), bytes.end());
      if (found == content.end()) continue;
      auto const offset = found - content.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
      std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(offset);
      stream.put(
          static_cast<char>(~std::to_integer<int>(content[static_cast<std::size_t>(offset)])));
      return;
    }
    FAIL() << "picture " << index << " is in no shard";
  }

  testing::TemporaryFolder folder_;
  std::vector<PackImage> images_;
};

TEST_F(PackedLoader, PicturesAndBoxesAreThoseThatWerePacked) {
  ShardSet const shards(folder_.path(), "train");
  auto const source = make_shard_source(shards);
  ASSERT_EQ(source->size(), 7);
  LoadScratch scratch;
  for (std::uint32_t i = 0; i < 7; ++i) {
    source->load(i, scratch);
    auto const expected = decode_image(images_[i].bytes);
    EXPECT_EQ(scratch.picture.rgb, expected.rgb);
    EXPECT_EQ(source->picture_size(i), (Size{expected.height, expected.width}));
    EXPECT_EQ(source->image_id(i), images_[i].id);
    std::size_t objects = 0;
    for (auto const& annotation : images_[i].annotations) objects += annotation.is_crowd ? 0 : 1;
    auto const boxes = source->boxes(i);
    ASSERT_EQ(boxes.size(), objects);
    for (auto const& [box, label] : boxes) EXPECT_LE(box.x2, static_cast<float>(expected.width));
  }
}

TEST_F(PackedLoader, ADamagedRecordIsReplacedAndNamed) {
  damage(4);
  ShardSet const shards(folder_.path(), "train");
  auto const source = make_shard_source(shards);
  TrainLoaderSettings settings;
  settings.batch = 7;
  settings.image_size = 32;
  settings.pipeline.workers = 2;
  TrainLoader loader(*source, settings);
  auto const batch = loader.next();
  EXPECT_EQ(batch.bad_samples, 1);
  std::vector<std::int64_t> ids = batch.image_ids;
  std::sort(ids.begin(), ids.end());
  // 996 (picture 4) is gone, 995 (picture 5) stands in for it.
  EXPECT_EQ(ids, (std::vector<std::int64_t>{994, 995, 995, 997, 998, 999, 1000}));
  auto const records = loader.take_bad_records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].image_id, 996);
  EXPECT_NE(records[0].reason.find("record"), std::string::npos) << records[0].reason;
  EXPECT_NE(records[0].reason.find("CRC-32C"), std::string::npos) << records[0].reason;
}

TEST_F(PackedLoader, ADamagedRecordEndsAStrictRun) {
  damage(4);
  ShardSet const shards(folder_.path(), "train");
  auto const source = make_shard_source(shards);
  ValLoaderSettings settings;
  settings.image_size = 32;
  settings.on_bad_sample = OnBadSample::fail;
  ValLoader loader(*source, settings);
  try {
    loader.next();
    FAIL() << "a damaged record was tolerated";
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("996"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace yolohpc::data
