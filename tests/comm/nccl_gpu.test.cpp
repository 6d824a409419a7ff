// NCCL on a real device.
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/comm/device.hpp"

namespace yolohpc::comm {
namespace {

class Nccl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (visible_device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
    host = make_mpi_communicator(world, {.timeout_s = 60});
    int const index = choose_device(world.local_rank(), world.local_size(), visible_device_count());
    nccl = make_nccl_communicator(world, *host, {.device_index = index, .timeout_s = 60});
    on_device = at::TensorOptions().device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
  }

  World world;
  std::unique_ptr<Communicator> host;
  std::unique_ptr<Communicator> nccl;
  at::TensorOptions on_device;
};

TEST_F(Nccl, SumsEveryType) {
  for (auto const type :
       {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kByte}) {
    auto const values = at::full({1000}, world.rank() + 1, on_device.dtype(type));
    nccl->all_reduce_in_place(values, ReduceOp::sum);
    EXPECT_TRUE(values.eq(world.size() * (world.size() + 1) / 2).all().item<bool>()) << type;
  }
}

TEST_F(Nccl, StreamsWaitForEachOther) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    auto values =
        at::full({1 << 20}, static_cast<float>(world.rank()), on_device.dtype(at::kFloat));
    values.mul_(2);  // before: on the caller's stream
    auto const handle = nccl->all_reduce_async(values, ReduceOp::sum);
    handle->wait();
    values.add_(1);  // after
    EXPECT_TRUE(values.eq(world.size() * (world.size() - 1) + 1).all().item<bool>());
  }
}

TEST_F(Nccl, MovesRows) {
  auto const rows = at::arange(world.size() * 2, on_device.dtype(at::kFloat));
  auto const part = nccl->reduce_scatter(rows, ReduceOp::max);
  EXPECT_TRUE(part.equal(rows.narrow(0, world.rank() * 2, 2)));
  EXPECT_TRUE(nccl->all_gather(part).equal(rows));
  nccl->broadcast_in_place(rows, 0);
  nccl->barrier();
}

TEST_F(Nccl, EachBackendRefusesTheOthersTensors) {
  EXPECT_THROW(nccl->all_reduce_in_place(at::ones({2}), ReduceOp::sum), base::Error);
  auto const there = at::ones({2}, on_device.dtype(at::kFloat));
  EXPECT_THROW(host->all_reduce_in_place(there, ReduceOp::sum), base::Error);
}

}  // namespace
}  // namespace yolohpc::comm
