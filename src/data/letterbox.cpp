#include "yolohpc/data/letterbox.hpp"

#include <cstring>

#include "yolohpc/data/resize.hpp"
#include "yolohpc/data/vectorised.hpp"

namespace yolohpc::data {
namespace {

YOLOHPC_VECTOR_CLONES
void split_channels(std::uint8_t const* __restrict rgb, int count, std::uint8_t* __restrict red,
                    std::uint8_t* __restrict green, std::uint8_t* __restrict blue) {
  for (int x = 0; x < count; ++x) {
    red[x] = rgb[3 * x];
    green[x] = rgb[3 * x + 1];
    blue[x] = rgb[3 * x + 2];
  }
}

}  // namespace

void write_letterbox(PixelView const& picture, Letterbox const& placed, std::uint8_t* planes,
                     Image& scratch) {
  PixelView content = picture;
  if (placed.resized != picture.size) {
    resize_bilinear(picture, placed.resized, scratch);
    content = view_of(scratch);
  }
  Size const target = placed.target();
  auto const plane = static_cast<std::ptrdiff_t>(target.height) * target.width;
  std::memset(planes, border_colour, static_cast<std::size_t>(plane) * 3);
  for (int y = 0; y < content.size.height; ++y) {
    std::uint8_t* const row =
        planes + static_cast<std::ptrdiff_t>(y + placed.top) * target.width + placed.left;
    split_channels(content.row(y), content.size.width, row, row + plane, row + 2 * plane);
  }
}

}  // namespace yolohpc::data
