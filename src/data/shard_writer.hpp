// Writes one shard file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "shard_format.hpp"

namespace yolohpc::data {

/// Gives the encoded picture of image `index` of the shard; the span is used until the next call.
using ShardImageSource = std::function<std::span<std::byte const>(std::size_t index)>;

/// Writes a whole shard to `path` and syncs it. The same input gives the same bytes: no times are
/// recorded, the format bounds are fixed. \throws Error  HDF5 or the file system refuses; an image
/// has not the length that the tables say
void write_shard(std::filesystem::path const& path, ShardHeader const& header,
                 ShardTables const& tables, ShardImageSource const& image_of);

}  // namespace yolohpc::data
