#include "exif.hpp"

#include <cstdint>
#include <cstring>

namespace yolohpc::data {
namespace {

constexpr std::uint16_t tiff_magic = 42;
constexpr std::uint16_t orientation_tag = 0x0112;
constexpr std::uint16_t type_short = 3;
constexpr std::uint16_t type_long = 4;
constexpr std::size_t entry_bytes = 12;

/// Numbers of a TIFF block in its own byte order. Reading past the end gives 0.
class TiffBytes {
 public:
  TiffBytes(std::span<std::byte const> bytes, bool big_endian) : bytes_(bytes), big_(big_endian) {}

  std::uint32_t number(std::size_t at, std::size_t width) const {
    if (at > bytes_.size() || width > bytes_.size() - at) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      std::size_t const place = big_ ? i : width - 1 - i;
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[at + place]);
    }
    return value;
  }

 private:
  std::span<std::byte const> bytes_;
  bool big_;
};

}  // namespace

int exif_orientation(std::span<std::byte const> tiff) {
  if (tiff.size() < 8) return 1;
  bool const big = std::memcmp(tiff.data(), "MM", 2) == 0;
  if (!big && std::memcmp(tiff.data(), "II", 2) != 0) return 1;
  TiffBytes const bytes(tiff, big);
  if (bytes.number(2, 2) != tiff_magic) return 1;
  std::size_t const directory = bytes.number(4, 4);
  std::size_t const entries = bytes.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    std::size_t const entry = directory + 2 + i * entry_bytes;
    if (entry + entry_bytes > tiff.size()) return 1;
    if (bytes.number(entry, 2) != orientation_tag) continue;
    std::uint32_t const type = bytes.number(entry + 2, 2);
    if (type != type_short && type != type_long) return 1;
    std::uint32_t const value = bytes.number(entry + 8, type == type_short ? 2 : 4);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace yolohpc::data
