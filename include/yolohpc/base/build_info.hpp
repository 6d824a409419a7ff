// How this program was built: versions and flags, as printed by `yolohpc --version`.
#pragma once

#include <string>

namespace yolohpc::base {

/// Versions and flags that were fixed when the program was built. All texts, never empty ("none").
struct BuildInfo {
  std::string version;
  std::string git_revision;
  std::string compiler;
  std::string build_type;
  std::string native;
  std::string sanitizer;
  std::string libtorch;
  std::string cuda;
  std::string hdf5;
  std::string mpi;
};

BuildInfo const& build_info();

}  // namespace yolohpc::base
