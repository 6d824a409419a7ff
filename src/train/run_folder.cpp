#include "yolohpc/train/run_folder.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::train {
namespace {

namespace fs = std::filesystem;

}  // namespace

// A start that failed leaves a folder with a configuration and a header, which is no run.
bool is_used(fs::path const& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "best.safetensors", ignored) ||
      fs::exists(folder / "last.safetensors", ignored)) {
    return true;
  }
  auto const checkpoints = folder / "checkpoints";
  if (fs::is_directory(checkpoints, ignored) && !fs::is_empty(checkpoints, ignored)) return true;
  std::ifstream results(folder / RunFiles::results);
  std::string header;
  std::string row;
  return std::getline(results, header) && std::getline(results, row);
}

RunLock::RunLock(fs::path const& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  auto const path = folder / ".lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  // Whether the folder can be written is checked, and said, where files are written.
  if (descriptor_ < 0) return;
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    auto const text = base::join(host.data(), ", process ", ::getpid(), "\n");
    bool const is_written =
        ::ftruncate(descriptor_, 0) == 0 && ::write(descriptor_, text.data(), text.size()) > 0;
    static_cast<void>(is_written);  // the lock holds without its text
    return;
  }
  bool const is_taken = errno == EWOULDBLOCK;
  std::array<char, 300> owner{};
  auto const length = ::read(descriptor_, owner.data(), owner.size() - 1);
  ::close(descriptor_);
  descriptor_ = -1;
  // A file system without locks can't protect anyone; it must not keep a run from starting either.
  if (!is_taken) return;
  std::string who(owner.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  while (!who.empty() && who.back() == '\n') who.pop_back();
  base::fail(base::ExitCode::usage, "another run is writing to ", folder.string(), " (",
             who.empty() ? "owner unknown" : who,
             "). Wait for it, end it, or choose another --out.");
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void remove_results(fs::path const& folder) {
  std::error_code ignored;
  for (auto const* name : {"best.safetensors", "last.safetensors", RunFiles::results, RunFiles::log,
                           RunFiles::report, "results.svg"}) {
    fs::remove(folder / name, ignored);
  }
  std::vector<fs::path> events;
  for (auto const& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      events.push_back(entry.path());
    }
  }
  for (auto const& path : events) fs::remove(path, ignored);
}

std::string broadcast_text(std::string const& text, comm::Communicator& communicator) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  communicator.broadcast_bytes(bytes, 0);
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

void check_run_folder(TrainSettings const& settings, comm::Communicator& communicator) {
  on_root(communicator, [&] {
    std::error_code error;
    YOLOHPC_CHECK_AS(base::ExitCode::usage,
                     !fs::exists(settings.out, error) || fs::is_directory(settings.out, error),
                     "--out ", settings.out.string(), " is a file. Name a folder.");
    YOLOHPC_CHECK_AS(base::ExitCode::usage,
                     settings.resume != Resume::never || !is_used(settings.out), "the run folder ",
                     settings.out.string(),
                     " holds a run already. Go on with it "
                     "(--resume auto), use it again (--exist-ok), or choose another --out.");
  });
}

std::optional<checkpoint::LoadedCheckpoint> find_checkpoint(TrainSettings const& settings,
                                                            checkpoint::CheckpointStore& store) {
  std::optional<checkpoint::LoadedCheckpoint> found;
  if (settings.resume == Resume::from_file) found = store.load(settings.resume_file);
  if (settings.resume == Resume::automatic) found = store.load_newest();
  // A run that goes on from elsewhere leaves nothing of an abandoned one to be found later.
  if (found) {
    store.continue_from(found->position);
  } else {
    store.continue_from({});
  }
  return found;
}

}  // namespace yolohpc::train
