#include "yolohpc/base/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace yolohpc::base {
namespace {

constexpr std::uint32_t reflected_polynomial = 0x82F63B78;

// slices[k][b]: the checksum of byte b followed by k zero bytes.
constexpr auto slices = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc & 1 ? crc >> 1 ^ reflected_polynomial : crc >> 1;
    }
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t const before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}();

using Kernel = std::uint32_t (*)(void const*, std::size_t, std::uint32_t);

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(void const* data,
                                                             std::size_t size_bytes,
                                                             std::uint32_t start) {
  auto const* at = static_cast<unsigned char const*>(data);
  std::uint64_t crc = ~start;
  for (; size_bytes >= 8; size_bytes -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto low = static_cast<std::uint32_t>(crc);
  for (; size_bytes > 0; --size_bytes, ++at) low = _mm_crc32_u8(low, *at);
  return ~low;
}

Kernel best_kernel() {
  return __builtin_cpu_supports("sse4.2") ? crc32c_sse42 : detail::crc32c_portable;
}
#else
Kernel best_kernel() {
  return detail::crc32c_portable;
}
#endif

}  // namespace

std::uint32_t detail::crc32c_portable(void const* data, std::size_t size_bytes,
                                      std::uint32_t start) {
  auto const* at = static_cast<unsigned char const*>(data);
  std::uint32_t crc = ~start;
  for (; size_bytes >= 8; size_bytes -= 8, at += 8) {
    std::uint32_t next = 0;
    for (std::size_t k = 0; k < 4; ++k) next |= static_cast<std::uint32_t>(at[k]) << 8 * k;
    next ^= crc;
    crc = slices[7][next & 0xFF] ^ slices[6][next >> 8 & 0xFF] ^ slices[5][next >> 16 & 0xFF] ^
          slices[4][next >> 24] ^ slices[3][at[4]] ^ slices[2][at[5]] ^ slices[1][at[6]] ^
          slices[0][at[7]];
  }
  for (; size_bytes > 0; --size_bytes, ++at) crc = crc >> 8 ^ slices[0][(crc ^ *at) & 0xFF];
  return ~crc;
}

std::uint32_t crc32c(void const* data, std::size_t size_bytes, std::uint32_t crc) {
  static Kernel const kernel = best_kernel();
  return kernel(data, size_bytes, crc);
}

std::uint32_t crc32c(std::span<std::byte const> bytes, std::uint32_t crc) {
  return crc32c(bytes.data(), bytes.size(), crc);
}

}  // namespace yolohpc::base
