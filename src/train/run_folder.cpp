#include "yolohpc/train/run_folder.hpp"

#include <array>
#include <cstring>

#include "yolohpc/base/error.hpp"

namespace yolohpc::train {
namespace {

namespace fs = std::filesystem;

}  // namespace

bool is_used(fs::path const& folder) {
  constexpr std::array marks = {RunFiles::config, RunFiles::results,  RunFiles::log,
                                "checkpoints",    "best.safetensors", "last.safetensors"};
  for (auto const* mark : marks) {
    std::error_code ignored;
    if (fs::exists(folder / mark, ignored)) return true;
  }
  return false;
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
