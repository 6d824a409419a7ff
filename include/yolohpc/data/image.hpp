// Pictures as files hold them: format, size and EXIF turn from the header, and the decoder to 8-bit
// RGB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "yolohpc/base/error.hpp"

namespace yolohpc::data {

/// Values are stored in shards: append, never renumber.
enum class ImageFormat : std::uint8_t { unknown = 0, jpeg = 1, png = 2 };

/// "jpeg", "png" or "unknown".
char const* name_of(ImageFormat format);

/// An 8-bit picture, rows from the top, 3 bytes R G B per pixel, no padding: (height, width, 3).
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;
};

/// Why bytes are no usable picture.
enum class ImageFaultKind {
  empty,        ///< no bytes at all
  unsupported,  ///< neither JPEG nor PNG, or a variant the decoder does not know
  truncated,    ///< the data end before the picture does
  corrupt,      ///< the decoder found data that contradict the format
  too_large,    ///< more pixels than max_image_pixels
};

/// The bytes of one picture cannot be used. The text begins with the kind in words ("truncated:
/// ...").
class ImageFault : public base::Error {
 public:
  ImageFault(ImageFaultKind kind, std::string const& text)
      : Error(text, base::ExitCode::bad_data), kind_(kind) {}
  ImageFaultKind kind() const { return kind_; }

 private:
  ImageFaultKind kind_;
};

/// Larger pictures are refused before memory is reserved for them: 2^28 pixels, 768 MiB as RGB.
inline constexpr std::int64_t max_image_pixels = std::int64_t{1} << 28;

/// What the header of a file says. Width and height are those of the stored pixels, before any
/// turn.
struct ImageInfo {
  ImageFormat format = ImageFormat::unknown;
  int width_px = 0;
  int height_px = 0;
  int orientation = 1;  ///< EXIF tag 0x0112, 1..8; 1 (as stored) when missing or out of range
  int channels = 3;     ///< stored channels: 1 grey, 2 grey + alpha, 3, 4 (CMYK or RGB + alpha)
  int bits = 8;         ///< bits per stored sample
  bool palette = false;
  bool alpha = false;

  bool is_cmyk() const { return format == ImageFormat::jpeg && channels == 4; }
};

/// True when an EXIF orientation (1..8) exchanges width and height: 5, 6, 7 and 8.
constexpr bool swaps_sides(int orientation) {
  return orientation >= 5;
}

/// By content, never by name.
ImageFormat sniff_format(std::span<std::byte const> bytes);

/// Size, format and EXIF orientation, read from the header without decoding.
/// \throws ImageFault  empty, unsupported (names the format it looks like), truncated or corrupt
/// header
ImageInfo read_image_info(std::span<std::byte const> bytes);

/// \throws ImageFault  more pixels than max_image_pixels (too_large)
void check_pixel_count(ImageInfo const& info);

/// Turns a picture so that it is displayed upright.
/// \param orientation  1..8 as in EXIF: 2 mirrored, 3 turned by 180 degrees, 4 upside down
/// mirrored,
///                     5 transposed, 6 needs a quarter turn clockwise, 7 anti-transposed, 8 a
///                     quarter turn counter-clockwise
/// Source: CIPA DC-008 (EXIF 2.3), section 4.6.4, tag Orientation.
Image turned(Image const& image, int orientation);

/// Decodes JPEG and PNG to RGB. Keeps its buffers from one picture to the next: make one per
/// thread. Not thread-safe itself.
///
/// Grey is replicated, CMYK and YCCK become RGB, alpha is dropped without blending, a palette is
/// expanded, of 16-bit samples the high byte is kept. Bytes after the end of the picture are
/// ignored. A JPEG decodes to the pixels of libjpeg-turbo's defaults (accurate integer DCT, smooth
/// chroma upsampling).
class ImageDecoder {
 public:
  ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;
  ~ImageDecoder();

  /// Decodes into `image`, whose memory is reused.
  /// \param orientation  the turn to apply (1: none), 1..8; the result has the turned size
  /// \throws ImageFault  anything that read_image_info or the decoder objects to, warnings
  /// included:
  ///                     a premature end is `truncated`, wrong restart markers or codes are
  ///                     `corrupt`. `image` then holds unspecified pixels.
  void decode(std::span<std::byte const> bytes, int orientation, Image& image);

  /// Decodes without a turn into memory of the caller.
  /// \param info  what read_image_info says of the same bytes
  /// \param rgb   height * width * 3 bytes exactly
  void decode_into(std::span<std::byte const> bytes, ImageInfo const& info,
                   std::span<std::uint8_t> rgb);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One picture with a decoder of its own, for tests and tools.
Image decode_image(std::span<std::byte const> bytes, int orientation = 1);

}  // namespace yolohpc::data
