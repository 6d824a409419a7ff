#include "image_check.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "yolohpc/base/crc32c.hpp"

namespace yolohpc::data {
namespace {

/// The turn with which the picture has the size that the source gives; empty when none has.
std::optional<int> fitting_turn(SourceImage const& image, ImageInfo const& info) {
  auto const fits = [&image](int width, int height) {
    bool const width_fits = image.width_px == 0 || image.width_px == width;
    return width_fits && (image.height_px == 0 || image.height_px == height);
  };
  bool const swaps = swaps_sides(info.orientation);
  if (fits(swaps ? info.height_px : info.width_px, swaps ? info.width_px : info.height_px)) {
    return info.orientation;
  }
  if (fits(info.width_px, info.height_px)) return 1;
  return std::nullopt;
}

std::string mismatch_text(SourceImage const& image, ImageInfo const& info) {
  std::string const turn =
      info.orientation == 1 ? "" : base::join(" (EXIF orientation ", info.orientation, ")");
  return base::join("size mismatch: the labels say ", image.width_px, " x ", image.height_px,
                    " pixels, the file has ", info.width_px, " x ", info.height_px, turn);
}

}  // namespace

ImageCheck unreadable_image(std::string kind, std::string reason) {
  ImageCheck check;
  check.fault_kind = std::move(kind);
  check.fault = std::move(reason);
  return check;
}

ImageCheck check_image(SourceImage const& image, std::span<std::byte const> bytes,
                       CheckBuffers& buffers) {
  ImageCheck check;
  try {
    check.info = read_image_info(bytes);
    check_pixel_count(check.info);
    auto const turn = fitting_turn(image, check.info);
    if (!turn) return unreadable_image("image_size_mismatch", mismatch_text(image, check.info));
    buffers.decoder.decode(bytes, *turn, buffers.pixels);
    check.orientation = *turn;
    check.width_px = buffers.pixels.width;
    check.height_px = buffers.pixels.height;
  } catch (ImageFault const& fault) {
    return unreadable_image("image_undecodable", fault.what());
  }
  check.size_bytes = bytes.size();
  check.crc32c = base::crc32c(bytes);
  check.digest = sha256(bytes);
  return check;
}

void count_conversions(ImageCheck const& check, std::map<std::string, std::int64_t>& converted) {
  ImageInfo const& info = check.info;
  std::pair<char const*, bool> const findings[] = {
      {"png_kept", info.format == ImageFormat::png},
      {"grey", info.channels <= 2},
      {"cmyk", info.is_cmyk()},
      {"palette", info.palette},
      {"alpha_dropped", info.alpha},
      {"sixteen_bit", info.bits == 16},
      {"exif_turned", check.orientation != 1},
      {"exif_left_raw", info.orientation != 1 && check.orientation == 1},
  };
  for (auto const& [name, holds] : findings) {
    if (holds) ++converted[name];
  }
}

void write_check(ByteWriter& writer, ImageCheck const& check) {
  writer.put(check.fault_kind);
  writer.put(check.fault);
  writer.put(check.size_bytes);
  writer.put(check.crc32c);
  writer.put_all(std::span<std::byte const>(check.digest));
  writer.put(check.info.format);
  writer.put(check.info.orientation);
  writer.put(check.info.channels);
  writer.put(check.info.bits);
  writer.put(check.info.palette);
  writer.put(check.info.alpha);
  writer.put(check.info.width_px);
  writer.put(check.info.height_px);
  writer.put(check.orientation);
  writer.put(check.width_px);
  writer.put(check.height_px);
}

ImageCheck read_check(ByteReader& reader) {
  ImageCheck check;
  check.fault_kind = reader.get_text();
  check.fault = reader.get_text();
  check.size_bytes = reader.get<std::uint64_t>();
  check.crc32c = reader.get<std::uint32_t>();
  auto const digest = reader.get_all<std::byte>();
  std::copy_n(digest.begin(), check.digest.size(), check.digest.begin());
  check.info.format = reader.get<ImageFormat>();
  check.info.orientation = reader.get<int>();
  check.info.channels = reader.get<int>();
  check.info.bits = reader.get<int>();
  check.info.palette = reader.get<bool>();
  check.info.alpha = reader.get<bool>();
  check.info.width_px = reader.get<int>();
  check.info.height_px = reader.get<int>();
  check.orientation = reader.get<int>();
  check.width_px = reader.get<int>();
  check.height_px = reader.get<int>();
  return check;
}

}  // namespace yolohpc::data
