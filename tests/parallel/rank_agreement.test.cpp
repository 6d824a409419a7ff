// Running statistics become their mean over ranks; a rank that differs is found and named.
#include "yolohpc/parallel/rank_agreement.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/comm/world.hpp"

namespace yolohpc::parallel {
namespace {

class RankAgreement : public ::testing::Test {
 protected:
  comm::World world_;
  std::unique_ptr<comm::Communicator> communicator_ = comm::make_mpi_communicator(world_);
};

// 0 + 1 + ... + (size - 1) = size (size - 1) / 2, so the mean of a + rank is a + (size - 1) / 2,
// exactly.
TEST_F(RankAgreement, RunningStatisticsAreAveraged) {
  auto const rank = world_.rank();
  auto const mean = (world_.size() - 1) / 2.0;
  base::NamedTensors const buffers{
      {"bn1.running_mean", at::arange(5, at::kFloat) + rank},
      {"bn1.num_batches_tracked", at::full({}, 10 + rank, at::kLong)},
      {"bn2.running_var", at::full({2, 3}, 7.0 + rank, at::kFloat)},
  };
  average_running_statistics(buffers, *communicator_);
  EXPECT_TRUE(at::equal(buffers[0].tensor, at::arange(5, at::kFloat) + mean)) << buffers[0].tensor;
  EXPECT_EQ(buffers[1].tensor.item<std::int64_t>(), 10 + rank);
  EXPECT_TRUE(at::equal(buffers[2].tensor, at::full({2, 3}, 7.0 + mean, at::kFloat)));
}

base::NamedTensors equal_tensors() {
  return {{"a", at::arange(12, at::kFloat).reshape({1, 3, 2, 2})},
          {"b", at::arange(4, at::kFloat)},
          {"c", at::arange(9, at::kLong)}};
}

TEST_F(RankAgreement, EqualTensorsPass) {
  EXPECT_EQ(first_difference_over_ranks(equal_tensors(), *communicator_), std::nullopt);
  check_equal_over_ranks(equal_tensors(), "parameters", *communicator_);
}

TEST_F(RankAgreement, FirstDifferenceIsNamedOnEveryRank) {
  if (world_.size() == 1) GTEST_SKIP() << "skipped: one rank cannot differ from itself";
  for (int odd_rank = 0; odd_rank < world_.size(); ++odd_rank) {
    auto tensors = equal_tensors();
    if (world_.rank() == odd_rank) {
      // The smallest change of one number, which a sum over ranks would round away.
      tensors[1].tensor[3] = 3.0000002384185791;
      tensors[2].tensor[0] = 5;
    }
    EXPECT_EQ(first_difference_over_ranks(tensors, *communicator_), "b");
    try {
      check_equal_over_ranks(tensors, "parameters", *communicator_);
      ADD_FAILURE() << "unequal parameters passed";
    } catch (base::Error const& error) {
      EXPECT_NE(std::string(error.what()).find("parameters differ between ranks, first in b"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace yolohpc::parallel
