// Hostile surroundings: full disk, read-only folder, file-size limit, SIGKILL in the middle of a
// save.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/philox.hpp"
#include "yolohpc/checkpoint/file_size_signal.hpp"
#include "yolohpc/checkpoint/store.hpp"
#include "yolohpc/comm/communicator.hpp"

#include "support/golden.hpp"

namespace yolohpc::checkpoint {
namespace {

namespace fs = std::filesystem;

base::Safetensors content_of(std::int64_t elements, double value) {
  base::Safetensors result;
  result.tensors = {{"model.weight", at::full({elements}, value, at::kFloat)}};
  return result;
}

class Faults : public ::testing::Test {
 protected:
  std::unique_ptr<CheckpointStore> open(fs::path const& run_folder) {
    return std::make_unique<CheckpointStore>(StoreSettings{run_folder, 2}, *communicator_, log_);
  }
  testing::TemporaryFolder folder_;
  base::Log log_;
  std::unique_ptr<comm::Communicator> communicator_ = comm::make_single_communicator();
};

/// A file system of its own, gone with the object.
class Mount {
 public:
  Mount(fs::path folder, char const* source, char const* type, unsigned long flags,
        char const* options)
      : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    is_mounted_ = ::mount(source, folder_.c_str(), type, flags, options) == 0;
  }
  Mount(Mount const&) = delete;
  Mount& operator=(Mount const&) = delete;
  ~Mount() {
    if (is_mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  bool is_mounted() const { return is_mounted_; }

 private:
  fs::path folder_;
  bool is_mounted_;
};

std::size_t count_files(fs::path const& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_F(Faults, FullDiskLeavesTheOlderAndNoLitter) {
  auto const disk = folder_.path() / "disk";
  Mount const mount(disk, "tmpfs", "tmpfs", 0, "size=3m");
  if (!mount.is_mounted()) GTEST_SKIP() << "skipped: mounting a tmpfs needs root";
  auto store = open(disk / "run");
  constexpr std::int64_t half_of_it = 400'000;
  store->save(content_of(half_of_it, 1), {0, 1}, Quality::ordinary);
  EXPECT_EQ(store->finish().at(0).error, "");
  store->save(content_of(half_of_it, 2), {0, 2}, Quality::ordinary);
  try {
    store->finish();
    FAIL() << "two files of 1.6 MB fit into 3 MB";
  } catch (base::Error const& error) {
    std::string const text = error.what();
    EXPECT_NE(text.find("step-000000002"), std::string::npos) << text;
    EXPECT_NE(text.find("No space left"), std::string::npos) << text;
    EXPECT_NE(text.find(" bytes)"), std::string::npos) << text;
  }
  EXPECT_EQ(store->load_newest()->position.step, 1);
  EXPECT_EQ(count_files(store->checkpoint_folder()), 1u);
  EXPECT_THROW(store->check_writable(4 << 20), base::Error);
}

TEST_F(Faults, ReadOnlyFolderIsFoundAtTheStart) {
  auto const run = folder_.path() / "run";
  open(run);
  Mount const bind(run, run.c_str(), nullptr, MS_BIND, nullptr);
  if (!bind.is_mounted()) GTEST_SKIP() << "skipped: a bind mount needs root";
  ASSERT_EQ(::mount(nullptr, run.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
  auto store = open(run);
  try {
    store->check_writable(1000);
    FAIL() << "a read-only folder passed";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("Read-only"), std::string::npos) << error.what();
  }
  store->save(content_of(100, 1), {0, 1}, Quality::ordinary);
  EXPECT_THROW(store->finish(), base::Error);
}

TEST_F(Faults, FileSizeLimitIsAnErrorNotADeath) {
  auto store = open(folder_.path() / "run");
  store->save(content_of(1000, 1), {0, 1}, Quality::ordinary);
  store->finish();
  ignore_file_size_signal();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit const small{100'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  store->save(content_of(100'000, 2), {0, 2}, Quality::ordinary);
  std::string text;
  try {
    store->finish();
  } catch (base::Error const& error) {
    text = error.what();
  }
  EXPECT_THROW(store->check_writable(200'000), base::Error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(text.find("File too large"), std::string::npos) << text;
  EXPECT_EQ(store->load_newest()->position.step, 1);
  EXPECT_EQ(count_files(store->checkpoint_folder()), 1u);
}

constexpr char const* child_folder_variable = "YOLOHPC_TEST_SAVER_FOLDER";
constexpr std::int64_t saver_elements = 300'000;

// The victim of the next test: saves on and on. The number of the last save that was on disk goes
// to a file that the killer reads.
TEST_F(Faults, DISABLED_Saver) {
  char const* const folder = std::getenv(child_folder_variable);
  ASSERT_NE(folder, nullptr);
  auto store = open(folder);
  auto const newest = store->load_newest();
  auto step = newest ? newest->position.step : 0;
  store->continue_from(newest ? std::optional(newest->position) : std::nullopt);
  std::ofstream(fs::path(folder) / "ready") << "ready";
  while (true) {
    ++step;
    store->save(content_of(saver_elements, static_cast<double>(step)), {0, step},
                step % 5 == 0 ? Quality::best : Quality::ordinary);
    for (auto const& outcome : store->take_outcomes()) {
      if (outcome.error.empty())
        std::ofstream(fs::path(folder) / "saved") << step - 1 << std::flush;
    }
  }
}

pid_t start_saver(fs::path const& folder) {
  ::setenv(child_folder_variable, folder.c_str(), 1);
  pid_t const child = ::fork();
  if (child != 0) return child;
  if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(1);
  ::execl("/proc/self/exe", "saver", "--gtest_also_run_disabled_tests",
          "--gtest_filter=Faults.DISABLED_Saver", nullptr);
  ::_exit(1);
}

// Starting a process takes longer than a save, so the random time counts from here.
bool wait_until_ready(fs::path const& folder) {
  for (int tries = 0; tries < 3000 && !fs::exists(folder / "ready"); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fs::remove(folder / "ready");
}

std::int64_t last_reported(fs::path const& folder) {
  std::int64_t step = 0;
  std::ifstream(folder / "saved") >> step;
  return step;
}

TEST_F(Faults, KillInTheMiddleOfASaveLeavesAWholeCheckpoint) {
  auto const run = folder_.path() / "run";
  fs::create_directories(run);
  base::Philox random(1, 0, 0, base::Purpose::test);
  constexpr int kills = 20;
  int runs_with_progress = 0;
  std::int64_t step_before = 0;
  for (int kill = 0; kill < kills; ++kill) {
    pid_t const child = start_saver(run);
    ASSERT_GT(child, 0);
    ASSERT_TRUE(wait_until_ready(run));
    auto const wait_ms = static_cast<std::int64_t>(random.uniform(0, 100));
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the saver ended by itself with status " << status;
    auto store = open(run);
    auto const newest = store->load_newest();
    auto const step = newest ? newest->position.step : 0;
    EXPECT_GE(step, step_before) << "after " << wait_ms << " ms";
    EXPECT_GE(step, last_reported(run)) << "after " << wait_ms << " ms";
    if (newest) {
      EXPECT_TRUE(at::equal(newest->content.tensors.at(0).tensor,
                            at::full({saver_elements}, static_cast<double>(step), at::kFloat)));
    }
    // Two newest, the best; a kill between rename and pruning leaves one more.
    EXPECT_LE(count_files(store->checkpoint_folder()), 4u);
    runs_with_progress += step > step_before ? 1 : 0;
    step_before = step;
  }
  // Else the kills came before the first save and prove nothing.
  EXPECT_GE(runs_with_progress, kills / 4) << "last step " << step_before;
}

}  // namespace
}  // namespace yolohpc::checkpoint
