#include "yolohpc/data/order.hpp"

#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/data/augment.hpp"
#include "yolohpc/data/multi_scale.hpp"

#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

std::string text_of_error(std::function<void()> const& call) {
  try {
    call();
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// What rank `rank` of `size` takes of a global batch.
std::vector<std::uint32_t> slots_of(SampleOrder& order, std::int64_t step, int rank, int size) {
  std::vector<std::uint32_t> samples;
  std::int64_t const each = order.batch() / size;
  for (std::int64_t slot = rank * each; slot < (rank + 1) * each; ++slot) {
    samples.push_back(order.sample_at(step, slot));
  }
  return samples;
}

// Requirements B3 and C13: any N, any rank count, equal step counts, each image in every epoch, no
// image twice but for the fill of the last batch, the same global batches for all rank counts.
TEST(SampleOrder, CoversEveryImageForAnyCountOfImagesAndRanks) {
  constexpr int epochs = 3;
  for (std::int64_t count = 1; count <= 17; ++count) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      for (std::int64_t batch = ranks; batch <= count; batch += ranks) {
        SCOPED_TRACE(base::join(count, " images, ", ranks, " ranks, batch ", batch));
        SampleOrder order({count, batch, 5});
        SampleOrder single({count, batch, 5});
        ASSERT_EQ(order.steps_per_epoch(), (count + batch - 1) / batch);
        for (int epoch = 0; epoch < epochs; ++epoch) {
          std::map<std::uint32_t, int> seen;
          for (std::int64_t g = 0; g < order.steps_per_epoch(); ++g) {
            std::int64_t const step = epoch * order.steps_per_epoch() + g;
            std::vector<std::uint32_t> global;
            for (int rank = 0; rank < ranks; ++rank) {
              auto const own = slots_of(order, step, rank, ranks);
              EXPECT_EQ(static_cast<std::int64_t>(own.size()), batch / ranks);
              global.insert(global.end(), own.begin(), own.end());
            }
            EXPECT_EQ(global, slots_of(single, step, 0, 1));
            EXPECT_EQ(std::set(global.begin(), global.end()).size(), global.size());
            for (auto const sample : global) ++seen[sample];
          }
          EXPECT_EQ(static_cast<std::int64_t>(seen.size()), count);
          auto const twice = std::count_if(seen.begin(), seen.end(),
                                           [](auto const& entry) { return entry.second == 2; });
          EXPECT_EQ(twice, order.steps_per_epoch() * batch - count);
        }
      }
    }
  }
}

TEST(SampleOrder, EveryEpochAndSeedHasItsOwnPermutation) {
  SampleOrder order({205, 16, 0});
  SampleOrder again({205, 16, 0});
  SampleOrder other({205, 16, 1});
  std::set<std::vector<std::uint32_t>> permutations;
  for (std::int64_t epoch = -2; epoch < 20; ++epoch) {
    EXPECT_EQ(order.permutation(epoch), again.permutation(epoch));
    EXPECT_NE(order.permutation(epoch), other.permutation(epoch));
    permutations.insert(order.permutation(epoch));
  }
  EXPECT_EQ(permutations.size(), 22u);
}

TEST(SampleOrder, StepsReachBackBeforeTheFirst) {
  SampleOrder order({10, 4, 0});
  EXPECT_EQ(order.position(-1).epoch, -1);
  EXPECT_EQ(order.position(-1).step, 2);
  EXPECT_EQ(order.position(-3).epoch, -1);
  EXPECT_EQ(order.position(-3).step, 0);
  EXPECT_EQ(order.position(-4).epoch, -2);
  EXPECT_EQ(order.position(3).epoch, 1);
  EXPECT_LT(order.sample_at(-4, 3), 10u);
}

TEST(SampleOrder, ForgettingChangesNothing) {
  SampleOrder order({20, 4, 0});
  auto const before = order.sample_at(3, 1);
  order.sample_at(40, 0);
  order.forget_before(35);
  EXPECT_EQ(order.sample_at(3, 1), before);
}

TEST(SampleOrder, RefusesABatchLargerThanTheDataSet) {
  auto const text = text_of_error([] { SampleOrder({5, 8, 0}); });
  EXPECT_NE(text.find("5 images"), std::string::npos) << text;
  EXPECT_NE(text.find("batch is 8"), std::string::npos) << text;
}

// Case B05.
TEST(BatchDivision, NamesTheNearestBatches) {
  auto text = text_of_error([] { check_batch_divides(6, 4, 1); });
  EXPECT_NE(text.find("batch is 6"), std::string::npos) << text;
  EXPECT_NE(text.find("4 ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("--batch 4 or 8"), std::string::npos) << text;
  text = text_of_error([] { check_batch_divides(2, 4, 1); });
  EXPECT_NE(text.find("at least 4"), std::string::npos) << text;
  EXPECT_NO_THROW(check_batch_divides(8, 4, 2));
}

TEST(ContiguousShare, DealsLikeTheReferenceDealsValidationBatches) {
  auto const fixture = testing::golden_json("data/sampler.json");
  int cases = 0;
  for (auto const& one : fixture.at("cases")) {
    if (one.at("kind") != "val_contiguous") continue;
    ++cases;
    auto const count = one.at("n").get<std::int64_t>();
    auto const world = one.at("world").get<int>();
    auto const asked = one.at("batch").get<std::int64_t>();
    std::int64_t const batch = asked >= count ? 1 : asked;  // spec/data.md section 14
    for (int rank = 0; rank < world; ++rank) {
      auto const share = contiguous_share((count + batch - 1) / batch, rank, world);
      auto const& range = one.at("per_rank_range").at(static_cast<std::size_t>(rank));
      EXPECT_EQ(std::min(share.first * batch, count), range.at(0).get<std::int64_t>());
      EXPECT_EQ(std::min((share.first + share.count) * batch, count),
                range.at(1).get<std::int64_t>());
    }
  }
  EXPECT_GT(cases, 0);
}

/// Counts how often each image is a mosaic partner.
std::vector<int> partner_counts(std::int64_t images, std::int64_t batch, int window, int epochs) {
  SampleOrder order({images, batch, 0});
  AugmentSettings const settings;
  std::vector<int> counts(static_cast<std::size_t>(images));
  for (std::int64_t step = 0; step < epochs * order.steps_per_epoch(); ++step) {
    auto const position = order.position(step);
    for (std::int64_t slot = 0; slot < batch; ++slot) {
      SampleKey key;
      key.epoch = static_cast<std::uint32_t>(position.epoch);
      key.position = static_cast<std::uint64_t>(position.step * batch + slot);
      auto const draw = draw_augmentation(settings, key, 256, window, Combine::yes);
      for (int const back : draw.frame.mosaic->steps_back) {
        ++counts[order.sample_at(step - back, slot)];
      }
    }
  }
  return counts;
}

// 205 images, batch 16, 20 epochs: 13 * 16 * 3 draws an epoch over 205 images are 60.9 for each. If
// partners were drawn uniformly over the set the counts would spread by 7.8 around it; a window
// over a permutation spreads them a little less or more, but must leave no image out or favoured.
TEST(MosaicPartners, AreSpreadEvenlyOverASmallDataSet) {
  auto const counts = partner_counts(205, 16, 16, 20);
  double const mean = std::accumulate(counts.begin(), counts.end(), 0.0) / 205;
  double square = 0;
  for (int const count : counts) square += (count - mean) * (count - mean);
  double const deviation = std::sqrt(square / 205);
  ::testing::Test::RecordProperty("deviation", std::to_string(deviation));
  EXPECT_NEAR(mean, 13 * 16 * 3 * 20 / 205.0, 1e-9);
  EXPECT_LT(deviation, 1.3 * std::sqrt(mean));
  auto const [least, most] = std::minmax_element(counts.begin(), counts.end());
  EXPECT_GT(*least, mean - 4.5 * std::sqrt(mean));
  EXPECT_LT(*most, mean + 4.5 * std::sqrt(mean));
}

TEST(MosaicPartners, OfOneMosaicAreDistinctSteps) {
  AugmentSettings const settings;
  for (std::uint64_t i = 0; i < 500; ++i) {
    auto const draw = draw_augmentation(settings, {1, 2, i}, 64, 4, Combine::yes);
    auto const& back = draw.frame.mosaic->steps_back;
    EXPECT_EQ(std::set<int>(back.begin(), back.end()).size(), 3u);
    EXPECT_GE(*std::min_element(back.begin(), back.end()), 1);
    EXPECT_LE(*std::max_element(back.begin(), back.end()), 4);
  }
}

TEST(MultiScale, DrawsEverySizeOfTheRangeAndNoOther) {
  SizeRange const range{608, 704, 32};
  std::map<int, int> counts;
  for (std::int64_t step = 0; step < 4000; ++step) ++counts[drawn_size(range, 3, step)];
  EXPECT_EQ(counts.size(), 4u);
  for (int const size : {608, 640, 672, 704}) EXPECT_NEAR(counts[size], 1000, 150) << size;
}

TEST(MultiScale, RefusesSizesTheModelCannotTake) {
  auto const text = text_of_error([] { SizeRange{600, 704, 32}.check(32); });
  EXPECT_NE(text.find("600:704:32"), std::string::npos) << text;
  auto const reversed = text_of_error([] { SizeRange{704, 608, 32}.check(32); });
  EXPECT_NE(reversed.find("704:608:32"), std::string::npos) << reversed;
}

}  // namespace
}  // namespace yolohpc::data
