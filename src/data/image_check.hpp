// The look at one image before it is packed: header, size, turn, one full decode, checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "yolohpc/data/image.hpp"
#include "yolohpc/data/label_source.hpp"
#include "yolohpc/data/packer.hpp"

#include "byte_stream.hpp"
#include "sha256.hpp"

namespace yolohpc::data {

struct ImageCheck {
  std::string fault_kind;  ///< of PackFault; empty when the image can be packed
  std::string fault;
  std::uint64_t size_bytes = 0;
  std::uint32_t crc32c = 0;
  Sha256Digest digest{};
  ImageInfo info;
  int orientation = 1;  ///< the turn to apply
  int width_px = 0;     ///< after the turn
  int height_px = 0;

  bool is_good() const { return fault_kind.empty(); }
};

/// What a thread keeps from image to image.
struct CheckBuffers {
  ImageDecoder decoder;
  Image pixels;
};

/// Never throws for a bad image: the fault is in the result.
ImageCheck check_image(SourceImage const& image, std::span<std::byte const> bytes,
                       CheckBuffers& buffers);

/// The result for an image whose bytes could not be read.
ImageCheck unreadable_image(std::string kind, std::string reason);

/// Counts what makes an image unusual: png_kept, grey, cmyk, palette, alpha_dropped, sixteen_bit,
/// exif_turned, exif_left_raw.
void count_conversions(ImageCheck const& check, std::map<std::string, std::int64_t>& converted);

void write_check(ByteWriter& writer, ImageCheck const& check);
ImageCheck read_check(ByteReader& reader);

}  // namespace yolohpc::data
