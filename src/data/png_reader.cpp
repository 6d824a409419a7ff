#include "png_reader.hpp"

#include <csetjmp>
#include <cstring>
#include <string_view>
#include <vector>

#include <png.h>

#include "exif.hpp"

namespace yolohpc::data {
namespace {

constexpr std::size_t signature_bytes = 8;
constexpr std::size_t chunk_overhead_bytes = 12;  // length, type, CRC
constexpr std::size_t header_chunk_bytes = 13;

std::uint32_t big_endian(std::byte const* at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(at[i]);
  return value;
}

int channels_of(int color_type) {
  switch (color_type) {
    case PNG_COLOR_TYPE_GRAY:
      return 1;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return 2;
    case PNG_COLOR_TYPE_RGB_ALPHA:
      return 4;
    default:
      return 3;
  }
}

[[noreturn]] void fail_truncated(char const* what) {
  throw ImageFault(ImageFaultKind::truncated,
                   base::join("truncated: the PNG ends before its picture does (", what, ")"));
}

ImageInfo header_of(std::span<std::byte const> bytes) {
  if (bytes.size() < signature_bytes + header_chunk_bytes + chunk_overhead_bytes) {
    fail_truncated("inside its header");
  }
  auto const* chunk = bytes.data() + signature_bytes;
  if (big_endian(chunk) != header_chunk_bytes || std::memcmp(chunk + 4, "IHDR", 4) != 0) {
    throw ImageFault(ImageFaultKind::corrupt,
                     "corrupt data in the PNG: no IHDR chunk at its start");
  }
  std::uint32_t const width = big_endian(chunk + 8);
  std::uint32_t const height = big_endian(chunk + 12);
  if (width == 0 || height == 0 || width > PNG_UINT_31_MAX || height > PNG_UINT_31_MAX) {
    throw ImageFault(ImageFaultKind::corrupt, base::join("corrupt data in the PNG: header says ",
                                                         width, " x ", height, " pixels"));
  }
  int const color_type = std::to_integer<int>(chunk[17]);
  ImageInfo info;
  info.format = ImageFormat::png;
  info.width_px = static_cast<int>(width);
  info.height_px = static_cast<int>(height);
  info.bits = std::to_integer<int>(chunk[16]);
  info.channels = channels_of(color_type);
  info.palette = color_type == PNG_COLOR_TYPE_PALETTE;
  info.alpha = (color_type & PNG_COLOR_MASK_ALPHA) != 0;
  return info;
}

/// What libpng calls back into; it leaves by png_longjmp, so nothing here may own memory.
struct Source {
  std::span<std::byte const> rest;
  bool ended = false;
  char text[128] = {};
};

void read_some(png_structp png, png_bytep target, std::size_t count) {
  auto& source = *static_cast<Source*>(png_get_io_ptr(png));
  if (count > source.rest.size()) {
    source.ended = true;
    png_error(png, "no more bytes");
  }
  std::memcpy(target, source.rest.data(), count);
  source.rest = source.rest.subspan(count);
}

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto& source = *static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source.text, text, sizeof source.text - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

/// The pair of libpng structures.
class Reader {
 public:
  explicit Reader(Source& source)
      : png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning)),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {
    YOLOHPC_CHECK(info_ != nullptr, "png_create_read_struct gave nothing: not enough memory");
    png_set_read_fn(png_, &source, read_some);
  }
  Reader(Reader const&) = delete;
  Reader& operator=(Reader const&) = delete;
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  // Owns nothing, so that longjmp skips no destructor. False: a fault.
  bool read(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    png_set_strip_16(png_);
    png_set_expand(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != std::size_t{png_get_image_width(png_, info_)} * 3) {
      png_error(png_, "rows are not 3 bytes a pixel");
    }
    png_read_image(png_, rows);
    // Reads on to the end chunk: a file that lacks it is cut short.
    png_read_end(png_, nullptr);
    return true;
  }

 private:
  png_structp png_;
  png_infop info_;
};

}  // namespace

ImageInfo read_png_info(std::span<std::byte const> bytes) {
  ImageInfo info = header_of(bytes);
  std::size_t at = signature_bytes;
  while (at + chunk_overhead_bytes <= bytes.size()) {
    std::size_t const length = big_endian(bytes.data() + at);
    std::string_view const type(reinterpret_cast<char const*>(bytes.data() + at + 4), 4);
    std::size_t const left = bytes.size() - at - chunk_overhead_bytes;
    if (length > left || type == "IEND") break;
    if (type == "eXIf") info.orientation = exif_orientation(bytes.subspan(at + 8, length));
    if (type == "tRNS") info.alpha = true;
    at += length + chunk_overhead_bytes;
  }
  return info;
}

void decode_png(std::span<std::byte const> bytes, ImageInfo const& info,
                std::span<std::uint8_t> rgb) {
  std::size_t const stride = static_cast<std::size_t>(info.width_px) * 3;
  YOLOHPC_CHECK(rgb.size() == stride * static_cast<std::size_t>(info.height_px), "memory of ",
                rgb.size(), " bytes for a picture of ", info.width_px, " x ", info.height_px,
                " pixels");
  std::vector<png_bytep> rows(static_cast<std::size_t>(info.height_px));
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = rgb.data() + y * stride;
  Source source{.rest = bytes};
  if (Reader(source).read(rows.data())) return;
  if (source.ended) fail_truncated("libpng: no more bytes");
  throw ImageFault(ImageFaultKind::corrupt,
                   base::join("corrupt data in the PNG (libpng: ", source.text, ")"));
}

}  // namespace yolohpc::data
