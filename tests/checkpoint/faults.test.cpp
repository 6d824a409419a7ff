// Hostile surroundings: full disk, read-only folder, file-size limit, SIGKILL in the middle of a
// save.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
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

std::string last_name(fs::path const& folder) {
  std::string last;
  for (auto const& entry : fs::directory_iterator(folder)) {
    last = std::max(last, entry.path().string());
  }
  return last;
}

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
constexpr std::int64_t saver_elements = 2'000'000;

void save_step(CheckpointStore& store, std::int64_t step) {
  store.save(content_of(saver_elements, static_cast<double>(step)), {0, step},
             step % 5 == 0 ? Quality::best : Quality::ordinary);
}

// The victim of the next test: saves on and on. The time of its first save, in seconds, goes to a
// file that the killer waits for.
TEST_F(Faults, DISABLED_Saver) {
  char const* const folder = std::getenv(child_folder_variable);
  ASSERT_NE(folder, nullptr);
  auto store = open(folder);
  auto const newest = store->load_newest();
  auto step = newest ? newest->position.step : 0;
  store->continue_from(newest ? std::optional(newest->position) : std::nullopt);
  save_step(*store, ++step);
  auto const first = store->finish();
  std::ofstream(fs::path(folder) / "ready.part") << first.at(0).seconds;
  fs::rename(fs::path(folder) / "ready.part", fs::path(folder) / "ready");
  while (true) save_step(*store, ++step);
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

// Starting a process takes longer than a save and disks differ, so the killer takes its time from
// the victim's first save. \return  seconds it took; nothing when it never came
std::optional<double> wait_for_first_save(fs::path const& folder) {
  for (int tries = 0; tries < 3000 && !fs::exists(folder / "ready"); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (!fs::exists(folder / "ready")) return std::nullopt;
  double save_s = 0;
  std::ifstream(folder / "ready") >> save_s;
  fs::remove(folder / "ready");
  return save_s;
}

TEST_F(Faults, KillInTheMiddleOfASaveLeavesAWholeCheckpoint) {
  auto const run = folder_.path() / "run";
  fs::create_directories(run);
  base::Philox random(1, 0, 0, base::Purpose::test);
  std::int64_t step_before = 0;
  for (int kill = 0; kill < 20; ++kill) {
    pid_t const child = start_saver(run);
    ASSERT_GT(child, 0);
    auto const save_s = wait_for_first_save(run);
    ASSERT_TRUE(save_s.has_value()) << "the saver saved nothing in 30 s";
    auto const wait_s = random.uniform(0, 2 * *save_s);
    std::this_thread::sleep_for(std::chrono::duration<double>(wait_s));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the saver ended by itself with status " << status;
    SCOPED_TRACE("kill " + std::to_string(kill) + " after " + std::to_string(wait_s) + " s");
    auto store = open(run);
    auto const newest = store->load_newest();
    ASSERT_TRUE(newest.has_value());
    // Falling back to an older one would mean that a reader could meet half a file.
    EXPECT_EQ(newest->path.string(), last_name(store->checkpoint_folder()));
    auto const step = newest->position.step;
    EXPECT_GT(step, step_before);
    EXPECT_TRUE(at::equal(newest->content.tensors.at(0).tensor,
                          at::full({saver_elements}, static_cast<double>(step), at::kFloat)));
    // Two newest and the best; a kill between rename and pruning leaves one more.
    EXPECT_LE(count_files(store->checkpoint_folder()), 4u);
    step_before = step;
  }
}

}  // namespace
}  // namespace yolohpc::checkpoint
