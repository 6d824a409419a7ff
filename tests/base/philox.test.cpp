#include "yolohpc/base/philox.hpp"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace yolohpc::base {
namespace {

using Block = std::array<std::uint32_t, 4>;

// Known answers of the Random123 distribution (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryPartOfTheKeyChangesTheStream) {
  std::set<std::uint32_t> firsts;
  firsts.insert(Philox(1, 2, 3, Purpose::affine).next());
  firsts.insert(Philox(9, 2, 3, Purpose::affine).next());
  firsts.insert(Philox(1ull << 40 | 1, 2, 3, Purpose::affine).next());
  firsts.insert(Philox(1, 9, 3, Purpose::affine).next());
  firsts.insert(Philox(1, 2, 9, Purpose::affine).next());
  firsts.insert(Philox(1, 2, 1ull << 40 | 3, Purpose::affine).next());
  firsts.insert(Philox(1, 2, 3, Purpose::color).next());
  EXPECT_EQ(firsts.size(), 7u);
}

TEST(Philox, UniformStaysInsideAndFillsTheRange) {
  Philox random(0, 0, 0, Purpose::test);
  double low = 1, high = 0, sum = 0;
  constexpr int draws = 20000;
  for (int i = 0; i < draws; ++i) {
    double const u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    low = std::min(low, u);
    high = std::max(high, u);
    sum += u;
  }
  EXPECT_LT(low, 0.001);
  EXPECT_GT(high, 0.999);
  EXPECT_NEAR(sum / draws, 0.5, 0.01);  // 5 standard deviations
}

TEST(Philox, BelowReachesEveryValueEquallyOften) {
  Philox random(3, 0, 0, Purpose::test);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts.at(random.below(7));
  for (int const count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(Philox, ShuffleIsAPermutationFixedByTheKey) {
  std::vector<std::uint32_t> values(10), again(10);
  for (std::uint32_t i = 0; i < 10; ++i) values[i] = again[i] = i;
  Philox a(0, 0, 0, Purpose::order), b(0, 0, 0, Purpose::order);
  shuffle_in_place(values, a);
  shuffle_in_place(again, b);
  EXPECT_EQ(values, again);
  EXPECT_EQ(std::set<std::uint32_t>(values.begin(), values.end()).size(), 10u);
}

}  // namespace
}  // namespace yolohpc::base
