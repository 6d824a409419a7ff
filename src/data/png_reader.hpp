// PNG: header facts from its chunks, pixels through libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "yolohpc/data/image.hpp"

namespace yolohpc::data {

/// \throws ImageFault
ImageInfo read_png_info(std::span<std::byte const> bytes);

/// \param info  of the same bytes
/// \param rgb   height * width * 3 bytes; \throws ImageFault
void decode_png(std::span<std::byte const> bytes, ImageInfo const& info,
                std::span<std::uint8_t> rgb);

}  // namespace yolohpc::data
