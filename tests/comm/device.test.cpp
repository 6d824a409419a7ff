#include "yolohpc/comm/device.hpp"

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::comm {
namespace {

template <typename Call>
std::string usage_error(Call const& call) {
  try {
    call();
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage);
    return error.what();
  }
  return "";
}

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST(ChooseDevice, TakesTheOnlyVisibleOneWhateverTheLocalRank) {
  for (int local_rank = 0; local_rank < 8; ++local_rank)
    EXPECT_EQ(choose_device(local_rank, 8, 1), 0);
}

TEST(ChooseDevice, TakesTheLocalRankAmongSeveral) {
  for (int local_size = 1; local_size <= 4; ++local_size) {
    for (int local_rank = 0; local_rank < local_size; ++local_rank) {
      EXPECT_EQ(choose_device(local_rank, local_size, 4), local_rank);
    }
  }
}

TEST(ChooseDevice, RefusesMoreRanksThanDevices) {
  auto const text = usage_error([] { choose_device(2, 6, 4); });
  EXPECT_TRUE(has(text, "6 ranks") && has(text, "sees 4") && has(text, "at most 4")) << text;
}

TEST(ChooseDevice, RefusesAHostWithoutDevice) {
  auto const text = usage_error([] { choose_device(1, 2, 0); });
  EXPECT_TRUE(has(text, "no CUDA device") && has(text, "--nv")) << text;
}

DeviceIdentity device(int rank, std::string host, std::string bus_id, std::string uuid = "") {
  return {rank, std::move(host), 0, std::move(bus_id), std::move(uuid), "0"};
}

TEST(CheckDevicesDiffer, NamesBothRanksOnOneDevice) {
  auto const text = usage_error([] {
    check_devices_differ({device(0, "a", "0000:01"), device(1, "a", "0000:02"),
                          device(2, "b", "0000:02"), device(5, "a", "0000:02")});
  });
  EXPECT_TRUE(has(text, "rank 1 on a") && has(text, "rank 5 on a") && has(text, "0000:02") &&
              has(text, "CUDA_VISIBLE_DEVICES=0"))
      << text;
}

TEST(CheckDevicesDiffer, AllowsOneBusIdOnTwoHosts) {
  EXPECT_EQ(usage_error([] {
              check_devices_differ({device(0, "a", "1"), device(1, "b", "1")});
            }),
            "");
}

TEST(CheckDevicesDiffer, BelievesTheUuidMoreThanTheHostName) {
  EXPECT_NE(
      usage_error([] {
        check_devices_differ({device(0, "box1", "1", "GPU-7"), device(1, "box2", "1", "GPU-7")});
      }),
      "");
  // Two slices of one partitioned GPU share the bus id.
  EXPECT_EQ(usage_error([] {
              check_devices_differ({device(0, "a", "1", "MIG-1"), device(1, "a", "1", "MIG-2")});
            }),
            "");
}

}  // namespace
}  // namespace yolohpc::comm
