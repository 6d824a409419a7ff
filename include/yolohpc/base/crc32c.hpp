// CRC-32C (Castagnoli), the checksum of shard records, checkpoint tensors and event files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace yolohpc::base {

/// CRC-32C of `bytes`, continued from `crc` (the result of an earlier call; 0 to begin).
/// crc32c("123456789") = 0xE3069283 (RFC 3720, appendix B.4).
std::uint32_t crc32c(std::span<std::byte const> bytes, std::uint32_t crc = 0);
std::uint32_t crc32c(void const* data, std::size_t size_bytes, std::uint32_t crc = 0);

namespace detail {
/// The table-driven form, for processors without the instruction and for tests.
std::uint32_t crc32c_portable(void const* data, std::size_t size_bytes, std::uint32_t crc);
}  // namespace detail

}  // namespace yolohpc::base
