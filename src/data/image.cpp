#include "yolohpc/data/image.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "jpeg_reader.hpp"
#include "png_reader.hpp"

namespace yolohpc::data {
namespace {

bool begins_with(std::span<std::byte const> bytes, std::string_view head, std::size_t at = 0) {
  return bytes.size() >= at + head.size() &&
         std::memcmp(bytes.data() + at, head.data(), head.size()) == 0;
}

/// What a refused file is, as far as its first bytes tell.
std::string guess_of(std::span<std::byte const> bytes) {
  if (begins_with(bytes, "RIFF") && begins_with(bytes, "WEBP", 8)) return "this is WebP";
  if (begins_with(bytes, "GIF8")) return "this is GIF";
  if (begins_with(bytes, "BM")) return "this looks like BMP";
  if (begins_with(bytes, std::string_view("II*\0", 4)) ||
      begins_with(bytes, std::string_view("MM\0*", 4))) {
    return "this is TIFF";
  }
  if (begins_with(bytes, "ftyp", 4)) return "this is HEIF or AVIF";
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "it begins with";
  for (std::byte const byte : bytes.first(std::min<std::size_t>(bytes.size(), 4))) {
    auto const value = std::to_integer<unsigned>(byte);
    text += {' ', digits[value >> 4], digits[value & 15]};
  }
  return text;
}

ImageInfo info_of(std::span<std::byte const> bytes, JpegReader& jpeg) {
  if (bytes.empty()) throw ImageFault(ImageFaultKind::empty, "empty file");
  switch (sniff_format(bytes)) {
    case ImageFormat::jpeg:
      return jpeg.read_info(bytes);
    case ImageFormat::png:
      return read_png_info(bytes);
    case ImageFormat::unknown:
      break;
  }
  throw ImageFault(ImageFaultKind::unsupported,
                   base::join("unsupported format: neither JPEG nor PNG, ", guess_of(bytes)));
}

/// Where the pixel (x, y) of a turned picture comes from: start + x * right + y * down, in pixels.
struct Walk {
  std::ptrdiff_t start;
  std::ptrdiff_t right;
  std::ptrdiff_t down;
};

Walk walk_of(int orientation, std::ptrdiff_t width, std::ptrdiff_t height) {
  std::ptrdiff_t const last_column = width - 1;
  std::ptrdiff_t const last_row = (height - 1) * width;
  switch (orientation) {
    case 2:
      return {last_column, -1, width};
    case 3:
      return {last_row + last_column, -1, -width};
    case 4:
      return {last_row, 1, -width};
    case 5:
      return {0, width, 1};
    case 6:
      return {last_row, -width, 1};
    case 7:
      return {last_row + last_column, -width, -1};
    case 8:
      return {last_column, width, -1};
    default:
      return {0, 1, width};
  }
}

void turn_into(Image const& image, int orientation, Image& result) {
  bool const swapped = swaps_sides(orientation);
  result.width = swapped ? image.height : image.width;
  result.height = swapped ? image.width : image.height;
  result.rgb.resize(image.rgb.size());
  Walk const walk = walk_of(orientation, image.width, image.height);
  std::uint8_t* target = result.rgb.data();
  for (int y = 0; y < result.height; ++y) {
    std::uint8_t const* source = image.rgb.data() + (walk.start + y * walk.down) * 3;
    for (int x = 0; x < result.width; ++x, target += 3, source += walk.right * 3) {
      std::memcpy(target, source, 3);
    }
  }
}

}  // namespace

char const* name_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::jpeg:
      return "jpeg";
    case ImageFormat::png:
      return "png";
    case ImageFormat::unknown:
      break;
  }
  return "unknown";
}

ImageFormat sniff_format(std::span<std::byte const> bytes) {
  if (begins_with(bytes, "\xFF\xD8\xFF")) return ImageFormat::jpeg;
  if (begins_with(bytes, "\x89PNG\r\n\x1A\n")) return ImageFormat::png;
  return ImageFormat::unknown;
}

ImageInfo read_image_info(std::span<std::byte const> bytes) {
  JpegReader jpeg;
  return info_of(bytes, jpeg);
}

void check_pixel_count(ImageInfo const& info) {
  std::int64_t const pixels = std::int64_t{info.width_px} * info.height_px;
  if (pixels <= max_image_pixels) return;
  throw ImageFault(ImageFaultKind::too_large,
                   base::join("too large: the header says ", info.width_px, " x ", info.height_px,
                              " pixels (limit ", max_image_pixels, " in all)"));
}

Image turned(Image const& image, int orientation) {
  Image result;
  turn_into(image, orientation, result);
  return result;
}

struct ImageDecoder::State {
  JpegReader jpeg;
  Image unturned;
};

ImageDecoder::ImageDecoder() : state_(std::make_unique<State>()) {}
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;
ImageDecoder::~ImageDecoder() = default;

void ImageDecoder::decode(std::span<std::byte const> bytes, int orientation, Image& image) {
  ImageInfo const info = info_of(bytes, state_->jpeg);
  check_pixel_count(info);
  Image& raw = orientation == 1 ? image : state_->unturned;
  raw.width = info.width_px;
  raw.height = info.height_px;
  raw.rgb.resize(static_cast<std::size_t>(info.width_px) *
                 static_cast<std::size_t>(info.height_px) * 3);
  decode_into(bytes, info, raw.rgb);
  if (orientation != 1) turn_into(raw, orientation, image);
}

void ImageDecoder::decode_into(std::span<std::byte const> bytes, ImageInfo const& info,
                               std::span<std::uint8_t> rgb) {
  check_pixel_count(info);
  if (info.format == ImageFormat::png) {
    decode_png(bytes, info, rgb);
  } else {
    state_->jpeg.decode(bytes, rgb);
  }
}

Image decode_image(std::span<std::byte const> bytes, int orientation) {
  Image image;
  ImageDecoder().decode(bytes, orientation, image);
  return image;
}

}  // namespace yolohpc::data
