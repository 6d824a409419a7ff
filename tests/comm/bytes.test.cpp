#include <gtest/gtest.h>

#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::comm {
namespace {

// `rank` of them would be too regular: lengths 0, 5, 20, 45, so that pieces of 7 bytes are cut
// unevenly.
std::vector<std::byte> content_of(int rank) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(5 * rank * rank));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(16 * rank + i % 13);
  return bytes;
}

class Bytes : public ::testing::TestWithParam<std::int64_t> {
 protected:
  World world;
  std::unique_ptr<Communicator> communicator =
      make_mpi_communicator(world, {.timeout_s = 30, .max_message_elements = GetParam()});

  std::vector<std::vector<std::byte>> all_contents() const {
    std::vector<std::vector<std::byte>> all;
    for (int rank = 0; rank < world.size(); ++rank) all.push_back(content_of(rank));
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(PieceLengths, Bytes, ::testing::Values(7, 1 << 30));

TEST_P(Bytes, GatherBringsUnevenLengthsToTheRootAlone) {
  for (int root = 0; root < world.size(); ++root) {
    auto const parts = communicator->gather_bytes(content_of(world.rank()), root);
    if (world.rank() == root) {
      EXPECT_EQ(parts, all_contents());
    } else {
      EXPECT_TRUE(parts.empty());
    }
  }
}

TEST_P(Bytes, AllGatherBringsThemToAll) {
  EXPECT_EQ(communicator->all_gather_bytes(content_of(world.rank())), all_contents());
}

TEST_P(Bytes, AllGatherOfNothing) {
  auto const parts = communicator->all_gather_bytes({});
  EXPECT_EQ(parts, std::vector<std::vector<std::byte>>(static_cast<std::size_t>(world.size())));
}

TEST_P(Bytes, BroadcastReplacesLengthAndContent) {
  for (int root = 0; root < world.size(); ++root) {
    auto bytes = content_of(world.rank());
    communicator->broadcast_bytes(bytes, root);
    EXPECT_EQ(bytes, content_of(root));
  }
}

}  // namespace
}  // namespace yolohpc::comm
