// The run folder: names, finding, fall-back, retention, leftovers, errors that training survives.
#include "yolohpc/checkpoint/store.hpp"

#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"
#include "yolohpc/comm/communicator.hpp"

#include "support/golden.hpp"

namespace yolohpc::checkpoint {
namespace {

namespace fs = std::filesystem;

class CheckpointStoreTest : public ::testing::Test {
 protected:
  CheckpointStoreTest() : out_(std::tmpfile()), log_({0, "", out_, out_}) {}
  ~CheckpointStoreTest() override { std::fclose(out_); }

  std::unique_ptr<CheckpointStore> open(int keep = 2) {
    return std::make_unique<CheckpointStore>(StoreSettings{run_folder(), keep}, *communicator_,
                                             log_);
  }
  fs::path run_folder() const { return folder_.path() / "run"; }
  fs::path checkpoint(std::string const& step) const {
    return run_folder() / "checkpoints" / ("step-" + step + ".safetensors");
  }
  std::string logged() {
    std::fflush(out_);
    std::rewind(out_);
    std::string text;
    for (int c = std::fgetc(out_); c != EOF; c = std::fgetc(out_))
      text.push_back(static_cast<char>(c));
    return text;
  }

  testing::TemporaryFolder folder_;
  std::FILE* out_;
  base::Log log_;
  std::unique_ptr<comm::Communicator> communicator_ = comm::make_single_communicator();
};

base::Safetensors content_of(double value) {
  base::Safetensors result;
  result.metadata["config"] = "epochs = 3\n";
  result.tensors = {{"model.weight", at::full({50, 40}, value, at::kFloat)},
                    {"ema.weight", at::full({50, 40}, value + 0.5, at::kFloat)}};
  return result;
}

double value_of(LoadedCheckpoint const& loaded) {
  return loaded.content.tensors.at(0).tensor[0][0].item<double>();
}

void save(CheckpointStore& store, std::int64_t step, Quality quality = Quality::ordinary) {
  store.save(content_of(static_cast<double>(step)), {step / 10, step}, quality);
}

void flip_byte(fs::path const& path, std::int64_t from_end) {
  auto bytes = base::read_file(path);
  bytes.at(bytes.size() - static_cast<std::size_t>(from_end)) ^= std::byte{1};
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<char const*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::string> names_in(fs::path const& folder) {
  std::vector<std::string> names;
  for (auto const& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST_F(CheckpointStoreTest, EmptyFolderHasNoCheckpoint) {
  EXPECT_FALSE(open()->load_newest().has_value());
}

TEST_F(CheckpointStoreTest, NewestIsFoundWithItsPosition) {
  auto store = open();
  save(*store, 9);
  save(*store, 10);
  store->finish();
  auto const found = store->load_newest();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->path, checkpoint("000000010"));
  EXPECT_EQ(found->position.step, 10);
  EXPECT_EQ(found->position.epoch, 1);
  EXPECT_EQ(value_of(*found), 10);
  EXPECT_EQ(found->content.metadata, content_of(0).metadata);
}

// The caller goes on changing its tensors while the thread writes.
TEST_F(CheckpointStoreTest, SaveKeepsTheValuesOfItsMoment) {
  auto store = open();
  auto content = content_of(1);
  store->save(content, {0, 1}, Quality::ordinary);
  content.tensors[0].tensor.fill_(99);
  store->save(content, {0, 2}, Quality::ordinary);
  content.tensors[0].tensor.fill_(100);
  store->finish();
  EXPECT_EQ(value_of(store->load(checkpoint("000000001"))), 1);
  EXPECT_EQ(value_of(store->load(checkpoint("000000002"))), 99);
}

TEST_F(CheckpointStoreTest, KeepsTheNewestAndTheBest) {
  auto store = open(2);
  for (std::int64_t step = 1; step <= 6; ++step) {
    save(*store, step, step <= 3 && step >= 2 ? Quality::best : Quality::ordinary);
  }
  store->finish();
  std::vector<std::string> const expected{
      "step-000000003.safetensors", "step-000000005.safetensors", "step-000000006.safetensors"};
  EXPECT_EQ(names_in(store->checkpoint_folder()), expected);
}

TEST_F(CheckpointStoreTest, BestIsKnownAfterARestart) {
  {
    auto store = open(1);
    save(*store, 1, Quality::best);
    store->finish();
  }
  auto store = open(1);
  save(*store, 2);
  save(*store, 3);
  store->finish();
  std::vector<std::string> const expected{"step-000000001.safetensors",
                                          "step-000000003.safetensors"};
  EXPECT_EQ(names_in(store->checkpoint_folder()), expected);
}

TEST_F(CheckpointStoreTest, DamagedNewestFallsBackLoudly) {
  auto store = open();
  save(*store, 1);
  save(*store, 2);
  store->finish();
  flip_byte(checkpoint("000000002"), 100);
  auto const found = store->load_newest();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->position.step, 1);
  auto const text = logged();
  EXPECT_NE(text.find("CHECKPOINT DAMAGED"), std::string::npos) << text;
  EXPECT_NE(text.find("step-000000002.safetensors: tensor ema.weight"), std::string::npos) << text;
}

TEST_F(CheckpointStoreTest, OnlyDamagedOnesAreAnError) {
  auto store = open();
  save(*store, 1);
  store->finish();
  fs::resize_file(checkpoint("000000001"), 300);
  try {
    store->load_newest();
    FAIL() << "a damaged checkpoint was taken for none";
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("step-000000001"), std::string::npos) << error.what();
  }
}

TEST_F(CheckpointStoreTest, NamedDamagedFileIsRefusedWithTheReason) {
  auto store = open();
  save(*store, 1);
  store->finish();
  flip_byte(checkpoint("000000001"), 100);
  try {
    store->load(checkpoint("000000001"));
    FAIL() << "a damaged checkpoint was loaded";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("tensor ema.weight"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(store->load(checkpoint("000000077")), base::Error);
}

TEST_F(CheckpointStoreTest, LeftoversAreRemovedAndNeverFound) {
  {
    auto store = open();
    save(*store, 1);
    store->finish();
  }
  auto const half = checkpoint("000000002").string() + ".tmp";
  auto const others = run_folder() / "checkpoints" / "notes.tmp";
  for (auto const& path : {fs::path(half), run_folder() / "last.safetensors.tmp", others}) {
    std::ofstream(path) << "half";
  }
  auto store = open();
  EXPECT_FALSE(fs::exists(half));
  EXPECT_FALSE(fs::exists(run_folder() / "last.safetensors.tmp"));
  EXPECT_TRUE(fs::exists(others));
  EXPECT_EQ(store->load_newest()->position.step, 1);
}

TEST_F(CheckpointStoreTest, LaterBranchIsSetAside) {
  auto store = open(5);
  for (std::int64_t const step : {1, 2, 3}) save(*store, step);
  store->finish();
  store->continue_from(Position{0, 2});
  EXPECT_EQ(store->load_newest()->position.step, 2);
  EXPECT_TRUE(fs::exists(checkpoint("000000003").string() + ".set-aside"));
  store->continue_from(std::nullopt);
  EXPECT_FALSE(store->load_newest().has_value());
}

TEST_F(CheckpointStoreTest, WeightsAreWrittenBeside) {
  auto store = open();
  store->write_weights(store->best_weights(), content_of(3));
  store->write_weights(store->last_weights(), content_of(4));
  auto const outcomes = store->finish();
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_FALSE(outcomes[0].is_checkpoint);
  EXPECT_EQ(outcomes[0].error, "");
  auto const weights = base::read_safetensors((run_folder() / "best.safetensors").string());
  EXPECT_EQ(weights.tensors[0].tensor[0][0].item<double>(), 3);
}

TEST_F(CheckpointStoreTest, FailedSaveLeavesTheOlderAndTrainingGoesOn) {
  auto store = open();
  save(*store, 1);
  store->finish();
  // A folder in the place of the temporary makes the open fail, for root too.
  fs::create_directories(checkpoint("000000002").string() + ".tmp/x");
  save(*store, 2);
  EXPECT_THROW(store->finish(), base::Error);
  auto const outcomes = store->take_outcomes();
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_NE(outcomes[0].error.find("step-000000002.safetensors.tmp"), std::string::npos)
      << outcomes[0].error;
  EXPECT_EQ(store->load_newest()->position.step, 1);
  save(*store, 3);
  auto const later = store->finish();
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].error, "");
  EXPECT_EQ(store->load_newest()->position.step, 3);
}

TEST_F(CheckpointStoreTest, FolderThatCannotBeMadeIsRefused) {
  std::ofstream(run_folder()) << "a file";
  try {
    open();
    FAIL() << "a file was taken for a folder";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find(run_folder().string()), std::string::npos)
        << error.what();
  }
}

TEST_F(CheckpointStoreTest, RoomIsChecked) {
  auto store = open();
  store->check_writable(1 << 16);
  EXPECT_TRUE(names_in(store->checkpoint_folder()).empty());
  try {
    store->check_writable(std::int64_t{1} << 60);
    FAIL() << "an exbibyte was granted";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("bytes free"), std::string::npos) << error.what();
  }
}

TEST_F(CheckpointStoreTest, KeepBelowOneIsRefused) {
  EXPECT_THROW(open(0), base::Error);
}

}  // namespace
}  // namespace yolohpc::checkpoint
