// The NCCL communicator over the stand-in: what it computes and in which order it starts and ends.
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "stand_in_nccl.hpp"

namespace yolohpc::testing {
namespace {

using comm::ReduceOp;

class OverStandIn : public ::testing::Test {
 protected:
  std::unique_ptr<comm::Communicator> make() {
    return comm::make_nccl_communicator_over(std::make_unique<StandInNccl>(rank, script), *host,
                                             {.timeout_s = 30, .watch_interval_s = 0.01});
  }

  comm::World world;
  std::unique_ptr<comm::Communicator> host = comm::make_mpi_communicator(world, {.timeout_s = 30});
  std::shared_ptr<NcclScript> script = std::make_shared<NcclScript>();
  int rank = world.rank();
  int size = world.size();
  float rank_sum = static_cast<float>(size * (size - 1) / 2);
};

TEST_F(OverStandIn, CollectivesOverTensors) {
  auto const nccl = make();
  EXPECT_STREQ(nccl->backend(), "nccl");
  auto const values = at::full({5}, static_cast<float>(rank));
  nccl->all_reduce_in_place(values, ReduceOp::sum);
  EXPECT_TRUE(values.eq(rank_sum).all().item<bool>());
  auto const rows = at::arange(size * 2, at::kFloat) + rank;
  auto const part = nccl->reduce_scatter(rows, ReduceOp::sum);
  EXPECT_TRUE(part.equal(at::arange(rank * 2, rank * 2 + 2, at::kFloat) * size + rank_sum));
  auto const whole = nccl->all_gather(at::full({2}, rank, at::kLong));
  EXPECT_TRUE(whole.equal(at::arange(size).repeat_interleave(2)));
  auto const sent = at::full({3}, rank, at::kInt);
  nccl->broadcast_in_place(sent, size - 1);
  EXPECT_TRUE(sent.eq(size - 1).all().item<bool>());
}

TEST_F(OverStandIn, AsynchronousReductionsKeepTheirOrderAndTheirTensors) {
  auto const nccl = make();
  std::vector<at::Tensor> values;
  std::vector<std::unique_ptr<comm::Pending>> handles;
  for (int i = 0; i < 20; ++i) {
    values.push_back(at::full({1 + 50 * i}, static_cast<float>(rank + i)));
    handles.push_back(nccl->all_reduce_async(values.back(), ReduceOp::sum));
  }
  for (int i = 19; i >= 0; --i) {
    handles[static_cast<std::size_t>(i)]->wait();
    handles[static_cast<std::size_t>(i)]->wait();
    EXPECT_TRUE(handles[static_cast<std::size_t>(i)]->done());
    auto const expected = rank_sum + static_cast<float>(size * i);
    EXPECT_TRUE(values[static_cast<std::size_t>(i)].eq(expected).all().item<bool>());
  }
}

TEST_F(OverStandIn, BytesAndBarrierGoThroughTheHost) {
  auto const nccl = make();
  int const before = script->collectives;
  std::vector<std::byte> const own(static_cast<std::size_t>(rank), std::byte{7});
  EXPECT_EQ(nccl->all_gather_bytes(own).size(), static_cast<std::size_t>(size));
  EXPECT_EQ(nccl->gather_bytes(own, 0).size(), rank == 0 ? static_cast<std::size_t>(size) : 0u);
  auto bytes = own;
  nccl->broadcast_bytes(bytes, size - 1);
  EXPECT_EQ(bytes.size(), static_cast<std::size_t>(size - 1));
  nccl->barrier();
  EXPECT_EQ(script->collectives, before);
}

TEST_F(OverStandIn, EndsInGoodOrder) {
  make()->all_reduce_async(at::ones({100}), ReduceOp::sum);
  EXPECT_EQ(script->orderly_ends, 1);
  EXPECT_EQ(script->aborts, 0);
}

TEST_F(OverStandIn, TwoRanksOnOneDeviceAreRefusedBeforeNcclStarts) {
  script->one_device_for_all = true;
  if (size == 1) {
    EXPECT_NO_THROW(make());
    return;
  }
  try {
    make();
    FAIL() << "two ranks on one device went on";
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("rank 0 on "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank 1 on "), std::string::npos) << error.what();
  }
  EXPECT_EQ(script->aborts, 0);
}

}  // namespace
}  // namespace yolohpc::testing
