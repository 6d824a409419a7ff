// Whole files: read, and write so that a reader never sees half of one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace yolohpc::base {

/// All bytes of a file. \throws Error (bad data)  it cannot be opened or read; says path and errno
/// text
std::vector<std::byte> read_file(std::filesystem::path const& path);
std::string read_text_file(std::filesystem::path const& path);

/// Writes `path`.tmp, syncs it, renames it to `path` and syncs the folder.
///
/// On failure the temporary file is removed, what stood under `path` before is untouched, and an
/// Error names the call, the path, the bytes wanted and the reason.
void write_file_atomically(std::filesystem::path const& path, std::span<std::byte const> bytes);
void write_file_atomically(std::filesystem::path const& path, std::string_view text);

/// Removes what is left of an interrupted write_file_atomically to `path`. Missing is fine.
void remove_stale_temporary(std::filesystem::path const& path);

}  // namespace yolohpc::base
