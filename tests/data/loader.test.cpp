#include "yolohpc/data/loader.hpp"

#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "drawn_source.hpp"

namespace yolohpc::data {
namespace {

using testing::DrawnSource;

TrainLoaderSettings small_settings() {
  TrainLoaderSettings settings;
  settings.batch = 8;
  settings.image_size = 48;
  settings.seed = 11;
  settings.window = 4;
  settings.augment.mixup = 0.3;
  settings.augment.degrees = 5;
  return settings;
}

/// One image of a batch with what belongs to it, as bytes: equal bytes, equal training.
struct Sample {
  std::int64_t image_id = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<float> boxes;  ///< rows that are valid
  std::vector<std::int64_t> labels;
  bool operator==(Sample const&) const = default;
};

std::vector<Sample> samples_of(Batch const& batch) {
  std::vector<Sample> samples;
  auto const rows = batch.boxes.size(1);
  for (std::int64_t b = 0; b < batch.images.size(0); ++b) {
    Sample sample;
    sample.image_id = batch.image_ids[static_cast<std::size_t>(b)];
    auto const* pixels = batch.images.const_data_ptr<std::uint8_t>() + b * batch.images.stride(0);
    sample.pixels.assign(pixels, pixels + batch.images.stride(0));
    for (std::int64_t m = 0; m < rows; ++m) {
      if (!batch.valid.const_data_ptr<bool>()[b * rows + m]) continue;
      auto const* box = batch.boxes.const_data_ptr<float>() + (b * rows + m) * 4;
      sample.boxes.insert(sample.boxes.end(), box, box + 4);
      sample.labels.push_back(batch.labels.const_data_ptr<std::int64_t>()[b * rows + m]);
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

void append(std::vector<Sample>& all, Batch const& batch) {
  auto const more = samples_of(batch);
  all.insert(all.end(), more.begin(), more.end());
}

/// The global batches of `steps` steps, put together from all ranks.
std::vector<Sample> global_batches(SampleSource const& source, TrainLoaderSettings settings,
                                   int ranks, int steps) {
  std::vector<std::unique_ptr<TrainLoader>> loaders;
  settings.size = ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    settings.rank = rank;
    loaders.push_back(std::make_unique<TrainLoader>(source, settings));
  }
  std::vector<Sample> all;
  for (int step = 0; step < steps; ++step) {
    for (auto const& loader : loaders) {
      for (int micro = 0; micro < settings.accumulate; ++micro) append(all, loader->next());
    }
  }
  return all;
}

TEST(TrainLoader, GivesTheSameSamplesForAnyRanksThreadsAndMicroBatches) {
  DrawnSource const source(21);
  auto settings = small_settings();
  settings.pipeline.workers = 0;
  constexpr int steps = 7;  // over two epochs of three steps and into the third
  auto const expected = global_batches(source, settings, 1, steps);
  ASSERT_EQ(expected.size(), 56u);
  for (int const ranks : {1, 2, 4}) {
    for (int const workers : {1, 4}) {
      settings.pipeline.workers = workers;
      EXPECT_TRUE(global_batches(source, settings, ranks, steps) == expected)
          << ranks << " ranks, " << workers << " workers";
    }
  }
  settings.accumulate = 2;
  EXPECT_TRUE(global_batches(source, settings, 2, steps) == expected) << "two micro-batches";
}

TEST(TrainLoader, EpochsAndSeedsDiffer) {
  DrawnSource const source(8);
  auto settings = small_settings();
  auto const batches = global_batches(source, settings, 1, 2);  // one step is one epoch here
  std::map<std::int64_t, Sample> first;
  for (std::size_t i = 0; i < 8; ++i) first[batches[i].image_id] = batches[i];
  EXPECT_EQ(first.size(), 8u);  // case B05: eight distinct samples in the one step
  for (std::size_t i = 8; i < 16; ++i) {
    EXPECT_NE(first.at(batches[i].image_id).pixels, batches[i].pixels) << batches[i].image_id;
  }
  settings.seed = 12;
  EXPECT_FALSE(global_batches(source, settings, 1, 2) == batches);
}

// One image, one slot: nothing but the epoch can tell the draws apart (requirement C12).
TEST(TrainLoader, AugmentsTheSameImageAnewInEveryEpoch) {
  DrawnSource const source(1);
  auto settings = small_settings();
  settings.batch = 1;
  settings.augment.mosaic = 0;
  settings.augment.mixup = 0;
  auto const pictures = global_batches(source, settings, 1, 5);
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(pictures[i].pixels, pictures[j].pixels);
  }
}

TEST(TrainLoader, ResumesInTheMiddleOfAnEpochBitForBit) {
  DrawnSource const source(21);
  auto settings = small_settings();
  settings.pipeline.workers = 2;
  auto const whole = global_batches(source, settings, 1, 8);
  for (int const start : {1, 4, 5}) {
    settings.first_epoch = start / 3;
    settings.first_step = start % 3;
    auto const rest = global_batches(source, settings, 2, 8 - start);
    std::vector<Sample> const expected(whole.begin() + start * 8, whole.end());
    EXPECT_TRUE(rest == expected) << "resumed at step " << start;
  }
}

TEST(TrainLoader, CountsPositionsThroughEpochs) {
  DrawnSource const source(21);
  auto settings = small_settings();
  settings.accumulate = 2;
  settings.first_epoch = 4;
  settings.first_step = 2;
  TrainLoader loader(source, settings);
  EXPECT_EQ(loader.steps_per_epoch(), 3);
  EXPECT_EQ(loader.next_position().epoch, 4);
  EXPECT_EQ(loader.next_position().step, 2);
  loader.next();
  EXPECT_EQ(loader.next_position().step, 2);
  loader.next();
  EXPECT_EQ(loader.next_position().epoch, 5);
  EXPECT_EQ(loader.next_position().step, 0);
}

TEST(TrainLoader, DecodesEachImageAboutOncePerEpoch) {
  DrawnSource const source(400);
  auto settings = small_settings();
  settings.batch = 20;
  settings.augment.mixup = 0;
  TrainLoader loader(source, settings);
  auto const epoch = [&] {
    std::int64_t const before = loader.decoded();
    for (int step = 0; step < 20; ++step) loader.next();
    return loader.decoded() - before;
  };
  epoch();  // fills the window
  // 400 main samples; an image that comes again within the window at the epoch's edge is not
  // decoded twice. What is made ahead moves at most two batches over the edge.
  auto const decoded = epoch();
  EXPECT_LE(decoded, 400 + 40);
  EXPECT_GE(decoded, 400 - 40 - 80);
}

TEST(TrainLoader, LastEpochsShowSinglePictures) {
  DrawnSource const source(16);
  auto settings = small_settings();
  settings.combining_epochs = 1;
  settings.augment.degrees = 0;
  auto const count_boxes = [](Batch const& batch) {
    std::size_t most = 0;
    for (auto const& sample : samples_of(batch)) most = std::max(most, sample.labels.size());
    return most;
  };
  TrainLoader loader(source, settings);
  std::size_t combined = std::max(count_boxes(loader.next()), count_boxes(loader.next()));
  EXPECT_GT(combined, 1u);
  for (int step = 0; step < 4; ++step) EXPECT_LE(count_boxes(loader.next()), 1u);
}

TEST(TrainLoader, ReplacesBadRecordsAlikeOnAllRankCounts) {
  DrawnSource const source(21, {3, 4, 20});
  auto settings = small_settings();
  auto const single = global_batches(source, settings, 1, 6);
  EXPECT_TRUE(global_batches(source, settings, 4, 6) == single);
  for (auto const& sample : single) {
    EXPECT_NE(sample.image_id, 1003);
    EXPECT_NE(sample.image_id, 1004);
    EXPECT_NE(sample.image_id, 1020);
  }
  TrainLoader loader(source, settings);
  std::int64_t replaced = 0;
  for (int step = 0; step < 3; ++step) replaced += loader.next().bad_samples;
  EXPECT_GE(replaced,
            3);  // one epoch shows each once; the fill of the last batch may show one again
  EXPECT_LE(replaced, 6);
  auto const records = loader.take_bad_records();
  ASSERT_EQ(records.size(), 3u);
  for (auto const& record : records) {
    EXPECT_EQ(record.image_id, 1000 + record.sample);
    EXPECT_NE(record.reason.find("checksum 1"), std::string::npos);
  }
  EXPECT_TRUE(loader.take_bad_records().empty());
}

TEST(TrainLoader, EndsWithTheErrorWhenBadRecordsAreNotTolerated) {
  DrawnSource const source(8, {3});
  for (int const workers : {0, 3}) {
    auto settings = small_settings();
    settings.on_bad_sample = OnBadSample::fail;
    settings.pipeline.workers = workers;
    TrainLoader loader(source, settings);
    try {
      loader.next();
      ADD_FAILURE() << "a bad record was tolerated";
    } catch (base::Error const& error) {
      EXPECT_EQ(error.code(), base::ExitCode::bad_data);
      EXPECT_NE(std::string(error.what()).find("record 3"), std::string::npos) << error.what();
    }
  }
}

TEST(TrainLoader, SaysWhenNothingCanBeRead) {
  DrawnSource const source(8, {0, 1, 2, 3, 4, 5, 6, 7});
  TrainLoader loader(source, small_settings());
  try {
    loader.next();
    FAIL() << "eight unreadable pictures were accepted";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("none of the 8 pictures"), std::string::npos)
        << error.what();
  }
}

TEST(TrainLoader, CanBeDroppedAtAnyMoment) {
  DrawnSource const source(40);
  auto settings = small_settings();
  settings.pipeline.workers = 4;
  settings.pipeline.prefetch = 6;
  for (int used = 0; used < 4; ++used) {
    TrainLoader loader(source, settings);
    for (int i = 0; i < used; ++i) loader.next();
  }
}

TEST(TrainLoader, ABatchThatIsKeptIsNotOverwritten) {
  DrawnSource const source(21);
  auto settings = small_settings();
  TrainLoader loader(source, settings);
  auto const kept = loader.next();
  auto const image = kept.images.select(0, 0);  // a view holds the memory as well
  auto const before = samples_of(kept);
  for (int i = 0; i < 12; ++i) loader.next();
  EXPECT_TRUE(samples_of(kept) == before);
}

TEST(TrainLoader, UsesMemoryAgain) {
  DrawnSource const source(21);
  TrainLoader loader(source, small_settings());
  std::set<void const*> places;
  for (int i = 0; i < 30; ++i) places.insert(loader.next().images.const_data_ptr());
  // Two are made ahead while one is in use.
  EXPECT_LE(places.size(), 4u);
}

TEST(TrainLoader, PadsBoxesToAFewSizes) {
  EXPECT_EQ(padded_box_count(0), 8);
  EXPECT_EQ(padded_box_count(8), 8);
  EXPECT_EQ(padded_box_count(9), 16);
  EXPECT_EQ(padded_box_count(65), 128);
}

// Requirement E9: a batch without boxes keeps its shapes.
TEST(ValLoader, ImagesWithoutBoxesGiveZeroRows) {
  DrawnSource const source(5);
  ValLoaderSettings settings;
  settings.rank = 4;
  settings.size = 5;  // image 4 alone, which has no boxes
  settings.image_size = 64;
  ValLoader loader(source, settings);
  auto const batch = loader.next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->boxes.sizes(), (std::vector<std::int64_t>{1, 8, 4}));
  EXPECT_TRUE(samples_of(*batch)[0].labels.empty());
}

TEST(ValLoader, CoversEachImageOnceForAnyCountOfImagesAndRanks) {
  for (auto const framing : {Framing::square, Framing::rectangular}) {
    for (std::int64_t count = 1; count <= 9; ++count) {
      DrawnSource const source(count);
      for (int ranks = 1; ranks <= 4; ++ranks) {
        std::multiset<std::int64_t> seen;
        for (int rank = 0; rank < ranks; ++rank) {
          ValLoaderSettings settings;
          settings.batch = 2;
          settings.rank = rank;
          settings.size = ranks;
          settings.image_size = 32;
          settings.framing = framing;
          ValLoader loader(source, settings);
          std::int64_t images = 0;
          while (auto const batch = loader.next()) {
            images += batch->images.size(0);
            EXPECT_EQ(batch->geometry.size(), batch->image_ids.size());
            seen.insert(batch->image_ids.begin(), batch->image_ids.end());
          }
          EXPECT_EQ(images, loader.images());
          EXPECT_FALSE(loader.next().has_value());
        }
        std::multiset<std::int64_t> expected;
        for (std::int64_t i = 0; i < count; ++i) expected.insert(1000 + i);
        EXPECT_EQ(seen, expected) << count << " images, " << ranks << " ranks";
      }
    }
  }
}

// Boxes go through the network frame and back to the original picture, and they frame their pixels.
TEST(ValLoader, GeometryBringsBoxesBack) {
  DrawnSource const source(12);
  for (auto const framing : {Framing::square, Framing::rectangular}) {
    ValLoaderSettings settings;
    settings.batch = 4;
    settings.image_size = 96;
    settings.framing = framing;
    settings.pipeline.workers = 2;
    ValLoader loader(source, settings);
    while (auto const batch = loader.next()) {
      auto const height = static_cast<float>(batch->images.size(2));
      auto const width = static_cast<float>(batch->images.size(3));
      auto const samples = samples_of(*batch);
      for (std::size_t b = 0; b < samples.size(); ++b) {
        auto const original = source.boxes(batch->samples[b]);
        ASSERT_EQ(samples[b].labels.size(), original.size());
        if (original.empty()) continue;
        auto const& n = samples[b].boxes;
        Corners const network{(n[0] - n[2] / 2) * width, (n[1] - n[3] / 2) * height,
                              (n[0] + n[2] / 2) * width, (n[1] + n[3] / 2) * height};
        auto const back = to_original(network, batch->geometry[b]);
        EXPECT_NEAR(back.x1, original[0].box.x1, 1e-3);
        EXPECT_NEAR(back.y1, original[0].box.y1, 1e-3);
        EXPECT_NEAR(back.x2, original[0].box.x2, 1e-3);
        EXPECT_NEAR(back.y2, original[0].box.y2, 1e-3);
        auto const middle =
            static_cast<std::size_t>(n[1] * height) * static_cast<std::size_t>(width) +
            static_cast<std::size_t>(n[0] * width);
        EXPECT_EQ(samples[b].pixels[middle], 250);  // inside the drawn rectangle
        EXPECT_EQ(samples[b].pixels[0], 114);       // no picture here is square: a border
      }
    }
  }
}

TEST(ValLoader, ABadRecordIsGreyAndKeepsItsId) {
  DrawnSource const source(4, {2});
  ValLoaderSettings settings;
  settings.image_size = 32;
  ValLoader loader(source, settings);
  auto const batch = loader.next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->bad_samples, 1);
  auto const bad = samples_of(*batch)[2];
  EXPECT_EQ(bad.image_id, 1002);
  EXPECT_TRUE(bad.labels.empty());
  EXPECT_EQ(std::count(bad.pixels.begin(), bad.pixels.end(), 114), 32 * 32 * 3);
  ASSERT_EQ(loader.take_bad_records().size(), 1u);
}

}  // namespace
}  // namespace yolohpc::data
