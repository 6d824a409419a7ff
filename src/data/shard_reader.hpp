// Reads one shard file: everything but the image bytes, whose place in the file it gives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "shard_format.hpp"

namespace yolohpc::data {

struct ShardContent {
  ShardHeader header;
  ShardTables tables;
  std::uint64_t payload_offset = 0;  ///< where image_bytes begin in the file
};

/// Reads everything but the image bytes and checks it against the stored CRC-32C. Takes no lock on
/// the file. \param words  how messages name the shard \throws Error (bad data)  not a shard,
/// another format version (both numbers in the text), damaged
ShardContent read_shard(std::filesystem::path const& path, std::string const& words);

}  // namespace yolohpc::data
