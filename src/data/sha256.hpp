// SHA-256, the digest of packed content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace yolohpc::data {

using Sha256Digest = std::array<std::byte, 32>;

/// Source: FIPS 180-4, section 6.2.
class Sha256 {
 public:
  void update(std::span<std::byte const> bytes);
  /// The digest of all bytes given; the object may not be used afterwards.
  Sha256Digest finish();

 private:
  void block(std::byte const* bytes);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

Sha256Digest sha256(std::span<std::byte const> bytes);
/// 64 lower-case hexadecimal digits.
std::string hex_of(Sha256Digest const& digest);

}  // namespace yolohpc::data
