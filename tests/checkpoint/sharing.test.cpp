// Rank 0 looks, all ranks know: the same checkpoint, the same error.
#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/checkpoint/store.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/comm/world.hpp"

#include "support/golden.hpp"

namespace yolohpc::checkpoint {
namespace {

namespace fs = std::filesystem;

// Each rank names a folder of its own, as with a file system that shows different ranks different
// things; all must follow rank 0.
class SharingTest : public ::testing::Test {
 protected:
  comm::World world_;
  std::unique_ptr<comm::Communicator> communicator_ = comm::make_mpi_communicator(world_);
  testing::TemporaryFolder folder_;
  base::Log log_{base::Log::Settings{world_.rank(), "", stdout, stdout}};
};

TEST_F(SharingTest, AllRanksLoadWhatRankZeroFound) {
  CheckpointStore store({folder_.path(), 2}, *communicator_, log_);
  EXPECT_FALSE(store.load_newest().has_value());
  base::Safetensors content;
  if (world_.is_root()) content.tensors = {{"w", at::arange(100, at::kFloat)}};
  store.save(content, {2, 40}, Quality::ordinary);
  store.finish();
  EXPECT_EQ(fs::exists(store.checkpoint_folder()), world_.is_root());
  auto const found = store.load_newest();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->position.step, 40);
  EXPECT_EQ(found->position.epoch, 2);
  EXPECT_TRUE(at::equal(found->content.tensors.at(0).tensor, at::arange(100, at::kFloat)));
  EXPECT_EQ(store.load(found->path).position.step, 40);
}

TEST_F(SharingTest, AnErrorOfRankZeroIsEveryonesError) {
  CheckpointStore store({folder_.path(), 2}, *communicator_, log_);
  if (world_.is_root()) {
    std::ofstream(store.checkpoint_folder() / "step-000000001.safetensors") << "rubbish";
  }
  try {
    store.load_newest();
    FAIL() << "rubbish was loaded";
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("step-000000001"), std::string::npos) << error.what();
  }
  communicator_->barrier();
}

}  // namespace
}  // namespace yolohpc::checkpoint
