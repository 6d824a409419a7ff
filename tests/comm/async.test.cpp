#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::comm {
namespace {

class Async : public ::testing::Test {
 protected:
  World world;
  std::unique_ptr<Communicator> communicator = make_mpi_communicator(world, {.timeout_s = 30});
  int rank = world.rank();
  int size = world.size();
  float rank_sum = static_cast<float>(size * (size - 1) / 2);
};

TEST_F(Async, QueuedReductionsOverlapWithCollectivesOfTheCaller) {
  constexpr int rounds = 40;
  std::vector<at::Tensor> queued;
  std::vector<std::unique_ptr<Pending>> handles;
  for (int round = 0; round < rounds; ++round) {
    queued.push_back(at::full({1 + 997 * round}, static_cast<float>(rank + round)));
    handles.push_back(communicator->all_reduce_async(queued.back(), ReduceOp::sum));
    auto const direct = at::full({513}, static_cast<float>(rank * round));
    communicator->all_reduce_in_place(direct, ReduceOp::sum);
    EXPECT_TRUE(direct.eq(rank_sum * static_cast<float>(round)).all().item<bool>());
    if (round % 3 == rank % 3) std::this_thread::yield();
  }
  // Any order of waiting is right.
  for (int round = rounds - 1; round >= 0; --round) {
    handles[static_cast<std::size_t>(round)]->wait();
    EXPECT_TRUE(handles[static_cast<std::size_t>(round)]->done());
    auto const expected = rank_sum + static_cast<float>(size * round);
    EXPECT_TRUE(queued[static_cast<std::size_t>(round)].eq(expected).all().item<bool>());
  }
}

TEST_F(Async, ProgressIsMadeWhileTheCallerDoesNothing) {
  auto const values = at::full({300000}, static_cast<float>(rank));
  auto const handle = communicator->all_reduce_async(values, ReduceOp::sum);
  base::Stopwatch const watch;
  while (!handle->done() && watch.elapsed_s() < 20) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(handle->done());
  communicator->take_waited_s();
  handle->wait();
  EXPECT_LT(communicator->take_waited_s(), 0.1);
  EXPECT_TRUE(values.eq(rank_sum).all().item<bool>());
}

TEST_F(Async, WaitingIsCountedWhereTheCallerWaits) {
  if (size == 1) return;
  constexpr double delay_s = 0.3;
  auto const values = at::ones({10});
  communicator->take_waited_s();
  if (rank == 1) std::this_thread::sleep_for(std::chrono::duration<double>(delay_s));
  communicator->all_reduce_async(values, ReduceOp::sum)->wait();
  if (rank == 0) {
    EXPECT_GT(communicator->take_waited_s(), delay_s / 2);
  } else if (rank == 1) {
    EXPECT_LT(communicator->take_waited_s(), delay_s);
  }
}

TEST_F(Async, AHandleMayBeDropped) {
  auto const values = at::full({1000}, static_cast<float>(rank));
  communicator->all_reduce_async(values, ReduceOp::sum);
  communicator->all_reduce_async(at::ones({1000}), ReduceOp::sum)
      ->wait();  // same queue: the first is over
  EXPECT_TRUE(values.eq(rank_sum).all().item<bool>());
}

}  // namespace
}  // namespace yolohpc::comm
