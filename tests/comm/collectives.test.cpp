// Small integers are held exactly by every type, so sums are equal, not close.
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::comm {
namespace {

class Collectives : public ::testing::Test {
 protected:
  World world;
  std::unique_ptr<Communicator> communicator = make_mpi_communicator(world, {.timeout_s = 30});
  // Small pieces, so that the cutting of long messages is tested without long messages.
  std::unique_ptr<Communicator> piecewise =
      make_mpi_communicator(world, {.timeout_s = 30, .max_message_elements = 7});
  int rank = world.rank();
  int size = world.size();
  int rank_sum = size * (size - 1) / 2;
};

// Element i of rank r: r + i mod 3. Summed over s ranks: s (s - 1) / 2 + s (i mod 3).
at::Tensor pattern(std::int64_t count) {
  return at::arange(count, at::kFloat).remainder(3);
}

constexpr at::ScalarType all_types[] = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16,
                                        at::kLong,   at::kInt,   at::kByte};

TEST_F(Collectives, AllReduceSumsEveryType) {
  for (auto const type : all_types) {
    // Above 64 KiB and below, since MPI changes its algorithm there.
    for (std::int64_t const count : {1, 19, 70001}) {
      auto const values = (pattern(count) + rank).to(type);
      communicator->all_reduce_in_place(values, ReduceOp::sum);
      auto const expected = (pattern(count) * size + rank_sum).to(type);
      EXPECT_TRUE(values.equal(expected)) << type << " " << count;
    }
  }
}

TEST_F(Collectives, AllReduceTakesMaxAndMinOfEveryType) {
  for (auto const type : all_types) {
    auto const highest = (pattern(19) + rank).to(type);
    communicator->all_reduce_in_place(highest, ReduceOp::max);
    EXPECT_TRUE(highest.equal((pattern(19) + (size - 1)).to(type))) << type;
    auto const lowest = (pattern(19) + rank).to(type);
    communicator->all_reduce_in_place(lowest, ReduceOp::min);
    EXPECT_TRUE(lowest.equal(pattern(19).to(type))) << type;
  }
}

TEST_F(Collectives, NegativeNumbersKeepTheirOrder) {
  // As 16-bit integers, -1 and -2 in half precision would compare the other way round.
  for (auto const type : {at::kHalf, at::kBFloat16, at::kFloat}) {
    auto const values = at::full({3}, -1.0 - rank, type);
    communicator->all_reduce_in_place(values, ReduceOp::max);
    EXPECT_TRUE(values.equal(at::full({3}, -1.0, type))) << type;
  }
}

TEST_F(Collectives, HalfPrecisionIsAddedInSinglePrecision) {
  // 1 + 2^-8 is not a bfloat16, so each addition of two ranks rounds to even: 1 + 2^-8 -> 1.
  if (size != 2) return;
  auto const values = at::full({5}, rank == 0 ? 1.0 : 0.00390625, at::kBFloat16);
  communicator->all_reduce_in_place(values, ReduceOp::sum);
  EXPECT_TRUE(values.equal(at::ones({5}, at::kBFloat16)));
}

TEST_F(Collectives, LongMessagesAreCutAndJoined) {
  auto const values = pattern(50) + rank;
  piecewise->all_reduce_in_place(values, ReduceOp::sum);
  EXPECT_TRUE(values.equal(pattern(50) * size + rank_sum));
  auto const sent = pattern(50) + rank;
  piecewise->broadcast_in_place(sent, size - 1);
  EXPECT_TRUE(sent.equal(pattern(50) + (size - 1)));
  EXPECT_THROW(piecewise->all_gather(pattern(50)), base::Error);
}

TEST_F(Collectives, ReduceScatterGivesEachRankItsRows) {
  auto const values = at::arange(size * 6, at::kFloat).reshape({size * 2, 3}) + rank;
  auto const part = communicator->reduce_scatter(values, ReduceOp::sum);
  auto const whole = at::arange(size * 6, at::kFloat).reshape({size * 2, 3}) * size + rank_sum;
  EXPECT_TRUE(part.equal(whole.narrow(0, rank * 2, 2)));
}

TEST_F(Collectives, ReduceScatterMayWriteIntoItsOwnRows) {
  auto const values = at::arange(size * 4, at::kFloat) + rank;
  auto const own = values.narrow(0, rank * 4, 4);
  communicator->reduce_scatter_into(own, values, ReduceOp::sum);
  EXPECT_TRUE(own.equal(at::arange(rank * 4, rank * 4 + 4, at::kFloat) * size + rank_sum));
}

TEST_F(Collectives, AllGatherJoinsRowsByRank) {
  auto const whole = communicator->all_gather(at::full({2, 3}, rank, at::kInt));
  auto const expected =
      at::arange(size, at::kInt).repeat_interleave(2).unsqueeze(1).expand({-1, 3});
  EXPECT_TRUE(whole.equal(expected));
}

TEST_F(Collectives, AllGatherMayReadItsOwnRows) {
  auto const whole = at::full({size * 3}, -1, at::kFloat);
  auto const own = whole.narrow(0, rank * 3, 3);
  own.fill_(rank);
  communicator->all_gather_into(whole, own);
  EXPECT_TRUE(whole.equal(at::arange(size, at::kFloat).repeat_interleave(3)));
}

TEST_F(Collectives, BroadcastKeepsMemoryOrderOfChannelsLast) {
  auto const content = at::arange(2 * 3 * 4 * 5, at::kFloat).reshape({2, 3, 4, 5});
  for (int root = 0; root < size; ++root) {
    auto const values = (content * (rank + 1)).contiguous(at::MemoryFormat::ChannelsLast);
    communicator->broadcast_in_place(values, root);
    EXPECT_TRUE(values.equal(content * (root + 1)));
  }
}

TEST_F(Collectives, EmptyTensorsPass) {
  auto const none = at::zeros({0, 4});
  communicator->all_reduce_in_place(none, ReduceOp::sum);
  communicator->all_reduce_async(none, ReduceOp::sum)->wait();
  communicator->broadcast_in_place(none, 0);
  EXPECT_EQ(communicator->all_gather(none).sizes(), none.sizes());
  EXPECT_EQ(communicator->reduce_scatter(none, ReduceOp::sum).sizes(), none.sizes());
}

// Not exact in float32: what is guarded is that all ranks and all calls agree to the last bit.
TEST_F(Collectives, SumsHaveTheSameBitsOnEveryRankAndEveryTime) {
  for (std::int64_t const count : {100, 100000}) {
    auto const own = at::arange(count, at::kFloat).add(0.1 + 0.7 * rank).sin();
    at::Tensor first;
    for (int repeat = 0; repeat < 3; ++repeat) {
      auto const values = own.clone();
      communicator->all_reduce_in_place(values, ReduceOp::sum);
      if (repeat == 0) first = values;
      EXPECT_TRUE(values.view(at::kInt).equal(first.view(at::kInt)));
      auto const of_root = values.clone();
      communicator->broadcast_in_place(of_root, 0);
      EXPECT_TRUE(values.view(at::kInt).equal(of_root.view(at::kInt)));
      auto const queued = own.clone();
      communicator->all_reduce_async(queued, ReduceOp::sum)->wait();
      EXPECT_TRUE(queued.view(at::kInt).equal(first.view(at::kInt)));
    }
  }
}

TEST_F(Collectives, WaitingIsCounted) {
  communicator->take_waited_s();
  communicator->barrier();
  EXPECT_GT(communicator->waited_s(), 0);
  EXPECT_GT(communicator->take_waited_s(), 0);
  EXPECT_EQ(communicator->waited_s(), 0);
}

TEST_F(Collectives, TensorsOffTheHostAreRefused) {
  auto const meta = at::zeros({3}, at::TensorOptions().device(at::kMeta));
  try {
    communicator->all_reduce_in_place(meta, ReduceOp::sum);
    FAIL() << "a tensor that is not in host memory reached MPI";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("meta"), std::string::npos) << error.what();
  }
}

TEST_F(Collectives, SettingsOutOfRangeAreRefused) {
  EXPECT_THROW(make_mpi_communicator(world, {.timeout_s = 0}), base::Error);
  EXPECT_THROW(make_mpi_communicator(world, {.timeout_s = -3}), base::Error);
  EXPECT_THROW(make_mpi_communicator(world, {.max_message_elements = 0}), base::Error);
}

}  // namespace
}  // namespace yolohpc::comm
