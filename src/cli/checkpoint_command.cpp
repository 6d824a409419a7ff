#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "yolohpc/base/files.hpp"
#include "yolohpc/checkpoint/format.hpp"
#include "yolohpc/cli/commands.hpp"

namespace yolohpc::cli {
namespace {

namespace fs = std::filesystem;
using base::ExitCode;

// A file, a folder of checkpoints, or a run folder.
std::vector<fs::path> find_files(fs::path path) {
  YOLOHPC_CHECK_AS(ExitCode::bad_data, fs::exists(path), path.string(), " does not exist.");
  if (!fs::is_directory(path)) return {path};
  if (fs::is_directory(path / "checkpoints")) path /= "checkpoints";
  std::vector<fs::path> files;
  for (auto const& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  YOLOHPC_CHECK_AS(ExitCode::bad_data, !files.empty(), path.string(), " holds no checkpoint.");
  return files;
}

}  // namespace

ExitCode run_checkpoint(ParsedOptions& options) {
  auto const& words = options.positionals();
  bool const lists_content = words.at(0) == "ls";
  int damaged = 0;
  for (auto const& file : find_files(words.at(1))) {
    try {
      auto const decoded = checkpoint::decode(base::read_file(file), file.string());
      std::printf("%s  epoch %lld  iteration %lld  %zu tensors  %s%s\n", file.c_str(),
                  static_cast<long long>(decoded.position.epoch),
                  static_cast<long long>(decoded.position.step), decoded.content.tensors.size(),
                  decoded.quality == checkpoint::Quality::best ? "best  " : "", "good");
      if (!lists_content) continue;
      for (auto const& entry : decoded.content.tensors) {
        std::printf("  %-60s %s %s\n", entry.name.c_str(), at::toString(entry.tensor.scalar_type()),
                    base::join(entry.tensor.sizes()).c_str());
      }
    } catch (base::Error const& error) {
      ++damaged;
      std::printf("%s  DAMAGED: %s\n", file.c_str(), error.what());
    }
  }
  return damaged == 0 ? ExitCode::done : ExitCode::bad_data;
}

}  // namespace yolohpc::cli
