// Encoded test pictures: smooth noise as PNG and JPEG bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include "yolohpc/base/philox.hpp"
#include "yolohpc/data/image.hpp"

namespace yolohpc::testing {

/// Colours that change slowly from a random corner to another.
inline data::Image smooth_picture(int width, int height, std::uint64_t number) {
  base::Philox random(0, 0, number, base::Purpose::test);
  double corner[4][3];
  for (auto& color : corner) {
    for (double& value : color) value = random.uniform(0, 255);
  }
  data::Image image{.width = width, .height = height, .rgb = {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double const u = (x + 0.5) / width;
      double const v = (y + 0.5) / height;
      for (int c = 0; c < 3; ++c) {
        double const top = corner[0][c] * (1 - u) + corner[1][c] * u;
        double const bottom = corner[2][c] * (1 - u) + corner[3][c] * u;
        image.rgb.push_back(static_cast<std::uint8_t>(top * (1 - v) + bottom * v));
      }
    }
  }
  return image;
}

inline std::vector<std::byte> bytes_of(std::string_view text) {
  auto const bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::vector<std::byte> png_bytes(data::Image const& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<std::byte> bytes(size);
  EXPECT_NE(
      png_image_write_to_memory(&header, bytes.data(), &size, 0, image.rgb.data(), 0, nullptr), 0)
      << header.message;
  bytes.resize(size);
  return bytes;
}

/// \param orientation  EXIF tag, 0 for a file without EXIF
inline std::vector<std::byte> jpeg_bytes(data::Image const& image, int orientation = 0) {
  tjhandle const handle = tjInitCompress();
  unsigned char* encoded = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(tjCompress2(handle, image.rgb.data(), image.width, 0, image.height, TJPF_RGB, &encoded,
                        &size, TJSAMP_420, 90, 0),
            0);
  auto const plain = std::as_bytes(std::span(encoded, size));
  std::vector<std::byte> bytes(plain.begin(), plain.end());
  if (orientation != 0) {
    // APP1 of 34 bytes: header, big-endian TIFF, one directory entry.
    std::string marker(
        "\xFF\xE1\x00\x22"
        "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0",
        36);
    marker[29] = static_cast<char>(orientation);
    auto const block = bytes_of(marker);
    bytes.insert(bytes.begin() + 2, block.begin(), block.end());
  }
  tjFree(encoded);
  tjDestroy(handle);
  return bytes;
}

}  // namespace yolohpc::testing
