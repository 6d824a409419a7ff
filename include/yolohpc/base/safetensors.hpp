// The safetensors format: named tensors and text metadata in one flat byte string.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "yolohpc/base/named_tensors.hpp"

namespace yolohpc::base {

/// What one safetensors file holds.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  NamedTensors tensors;
};

/// The bytes of a safetensors file: u64 length of the header, JSON header, tensor data in the given
/// order, each tensor row-major. The data begin at a multiple of 8 bytes.
///
/// Tensors may live on any device and have any strides. The same input gives the same bytes.
/// \throws Error  a type that the format does not know, or a name twice
/// Source: safetensors format description, version 0.4.
std::vector<std::byte> serialize(Safetensors const& content);

/// \param bytes   a whole file; the tensors are copies
/// \param origin  named in messages
/// \throws Error (bad data)  header too long or not JSON, offsets that overlap, leave gaps or end
/// outside,
///                           an unknown type, a shape that does not fit its bytes
Safetensors parse_safetensors(std::span<std::byte const> bytes, std::string const& origin);

/// Reads and parses a file. \throws Error (bad data)
Safetensors read_safetensors(std::string const& path);

}  // namespace yolohpc::base
