#include "yolohpc/train/step_exchange.hpp"

#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/comm/world.hpp"

namespace yolohpc::train {
namespace {

struct Ranks {
  comm::World world;
  std::unique_ptr<comm::Communicator> communicator =
      comm::make_mpi_communicator(world, {.timeout_s = 30});
};

TEST(StepExchange, AveragesStatisticsAndItemsAndSpreadsTheWishToStop) {
  Ranks ranks;
  auto& communicator = *ranks.communicator;
  auto mean = at::zeros({2}, at::kFloat);
  auto var = at::ones({3}, at::kFloat);
  auto count = at::zeros({}, at::kLong);
  StepExchange exchange({{"mean", mean}, {"var", var}, {"count", count}}, communicator);
  EXPECT_EQ(exchange.statistics().numel(), 5);
  mean.fill_(2.0 * communicator.rank());
  count.fill_(communicator.rank());
  bool const is_last = communicator.rank() == communicator.size() - 1;
  exchange.begin({at::full({3}, 4.0 * communicator.rank(), at::kFloat), is_last});
  exchange.finish();
  float const expected =
      static_cast<float>(communicator.size() - 1);  // mean of 0, 2, ... 2 (R - 1)
  EXPECT_EQ(mean[0].item<float>(), expected);
  EXPECT_EQ(var[2].item<float>(), 1.0f);
  EXPECT_EQ(exchange.mean_items()[1].item<float>(), 2 * expected);
  EXPECT_TRUE(exchange.anyone_stops());
  EXPECT_EQ(count.item<std::int64_t>(), communicator.rank());  // counters are each rank's own
  exchange.begin({at::zeros({3}, at::kFloat), false});
  exchange.finish();
  EXPECT_FALSE(exchange.anyone_stops());
}

TEST(StepExchange, OneBadBatchDoesNotPoisonTheStatistics) {
  Ranks ranks;
  auto mean = at::full({2}, 3.0, at::kFloat);
  StepExchange exchange({{"mean", mean}}, *ranks.communicator);
  if (ranks.communicator->rank() == 0) mean[1] = std::numeric_limits<float>::quiet_NaN();
  exchange.begin({at::zeros({3}, at::kFloat), false});
  exchange.finish();
  EXPECT_EQ(mean[0].item<float>(), 3.0f);
  EXPECT_EQ(mean[1].item<float>(), 3.0f);
}

}  // namespace
}  // namespace yolohpc::train
