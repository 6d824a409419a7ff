#include "yolohpc/comm/world.hpp"

#include <cstdlib>
#include <numeric>

#include <gtest/gtest.h>
#include <unistd.h>

namespace yolohpc::comm {
namespace {

TEST(World, KnowsRanksOfThisHost) {
  World const world;
  EXPECT_EQ(world.size(), std::atoi(std::getenv("YOLOHPC_TEST_RANKS")));
  // All ranks of the tests run on one host, so local and global ranks agree.
  EXPECT_EQ(world.local_rank(), world.rank());
  EXPECT_EQ(world.local_size(), world.size());
  std::vector<int> counting(static_cast<std::size_t>(world.size()));
  std::iota(counting.begin(), counting.end(), 0);
  EXPECT_EQ(world.local_ranks(), counting);
  EXPECT_EQ(world.is_root(), world.rank() == 0);
}

TEST(World, NamesTheHostOfEveryRank) {
  World const world;
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  EXPECT_EQ(world.host(), name);
  EXPECT_EQ(world.hosts(), std::vector<std::string>(static_cast<std::size_t>(world.size()), name));
}

TEST(World, RefusesATimeOutThatIsNotAboveZero) {
  EXPECT_THROW(World(WorldSettings{.timeout_s = 0}), base::Error);
  EXPECT_THROW(World(WorldSettings{.timeout_s = -1}), base::Error);
}

TEST(World, NamesItsLibrary) {
  EXPECT_GT(World::mpi_library().size(), 4u);
}

}  // namespace
}  // namespace yolohpc::comm
