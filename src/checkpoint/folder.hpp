// The files of a checkpoint folder: names, order, retention, leftovers, room. For rank 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "yolohpc/checkpoint/store.hpp"

namespace yolohpc::checkpoint {

/// A file whose name is that of a checkpoint. Nothing is said about its content.
struct FileEntry {
  std::filesystem::path path;
  std::int64_t step;
};

/// step-000001234.safetensors: names sort like steps.
std::filesystem::path file_name_of(std::int64_t step);

/// The step that a file name stands for; nothing for every other name (temporaries among them).
std::optional<std::int64_t> step_of(std::filesystem::path const& path);

/// Checkpoints of `folder`, newest first. Empty when there is no folder.
std::vector<FileEntry> list_checkpoints(std::filesystem::path const& folder);

/// Removes the temporaries of checkpoints in `folder`. Other people's files stay.
void remove_temporaries(std::filesystem::path const& folder);

/// Removes all but the `keep` newest and the newest that is marked best. A file that cannot be
/// removed stays.
void prune(std::filesystem::path const& folder, int keep);

/// Makes sure that `free` bytes are left in `folder` and that a file of `file_bytes` can be made
/// there; the test file is removed. \throws Error  bytes wanted and free, or the call that failed
/// and why
struct RoomNeeded {
  std::int64_t free_bytes;
  std::int64_t file_bytes;
};
void check_room(std::filesystem::path const& folder, RoomNeeded needed);

}  // namespace yolohpc::checkpoint
