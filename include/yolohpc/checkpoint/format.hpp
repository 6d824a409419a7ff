// The bytes of a checkpoint: a safetensors file that carries checksums of its tensors and of its
// header.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "yolohpc/base/safetensors.hpp"
#include "yolohpc/checkpoint/store.hpp"

namespace yolohpc::checkpoint {

/// Adds to the metadata, then serialises:
///
///     checkpoint.epoch, checkpoint.step   the position, decimal
///     checkpoint.best                     "true" or "false"
///     checkpoint.crc32c                   JSON object: tensor name -> CRC-32C of its bytes, 8 hex
///     digits checkpoint.header_crc32c            CRC-32C over all other metadata and every
///     tensor's name, type and
///                                         shape, 8 hex digits
///
/// Any reader of safetensors can read the result.
/// \throws Error  the metadata hold a key that begins with "checkpoint."
std::vector<std::byte> encode(base::Safetensors content, Position position, Quality quality);

struct Decoded {
  Position position;
  Quality quality = Quality::ordinary;
  base::Safetensors content;  ///< without the keys above
};

/// Verifies everything.
/// \param origin  named in messages
/// \throws Error (bad data)  cut short, no checkpoint at all, or names the tensor whose checksum is
///         wrong
Decoded decode(std::span<std::byte const> bytes, std::string const& origin);

/// What the header of a file says, without reading or verifying its data; `ordinary` when it cannot
/// be read.
Quality peek_quality(std::filesystem::path const& path);

}  // namespace yolohpc::checkpoint
