// The manifest SPLIT.json: written last, so that a split with one is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace yolohpc::data {

struct ManifestShard {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;  ///< of the whole file
  std::int64_t images = 0;
};

struct Manifest {
  std::string split;
  std::string digest;
  std::int64_t images = 0;
  std::int64_t boxes = 0;  ///< those that remain for training
  std::vector<ManifestShard> shards;
};

std::filesystem::path manifest_path(std::filesystem::path const& folder, std::string const& split);

/// Atomically. \throws Error
void write_manifest(std::filesystem::path const& folder, Manifest const& manifest);

/// \throws Error (bad data)  missing (says what is in the folder instead), not a manifest, another
/// version
Manifest read_manifest(std::filesystem::path const& folder, std::string const& split);

/// Shard files of that split in the folder, whoever wrote them; sorted.
std::vector<std::filesystem::path> shard_files_in(std::filesystem::path const& folder,
                                                  std::string const& split);

}  // namespace yolohpc::data
