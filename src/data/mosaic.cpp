#include "yolohpc/data/mosaic.hpp"

#include <algorithm>

namespace yolohpc::data {

Canvas single_canvas(PixelView const& picture) {
  Canvas canvas;
  canvas.size = picture.size;
  canvas.split_x = picture.size.width;
  canvas.split_y = picture.size.height;
  canvas.tiles[0] = {picture, 0, 0, picture.size.width, picture.size.height, 0, 0};
  return canvas;
}

Canvas mosaic_canvas(std::array<PixelView, 4> const& pictures, int image_size, int centre_x,
                     int centre_y) {
  Canvas canvas;
  canvas.size = {2 * image_size, 2 * image_size};
  canvas.split_x = centre_x;
  canvas.split_y = centre_y;
  for (std::size_t quarter = 0; quarter < pictures.size(); ++quarter) {
    Tile& tile = canvas.tiles[quarter];
    tile.pixels = pictures[quarter];
    Size const size = tile.pixels.size;
    bool const is_left = quarter % 2 == 0;
    bool const is_upper = quarter < 2;
    tile.origin_x = is_left ? centre_x - size.width : centre_x;
    tile.origin_y = is_upper ? centre_y - size.height : centre_y;
    tile.left = std::max(tile.origin_x, 0);
    tile.top = std::max(tile.origin_y, 0);
    tile.right = std::min(tile.origin_x + size.width, canvas.size.width);
    tile.bottom = std::min(tile.origin_y + size.height, canvas.size.height);
  }
  return canvas;
}

void append_canvas_boxes(std::span<LabelledBox const> boxes, Tile const& tile, Size canvas,
                         std::vector<LabelledBox>& out) {
  auto const shift_x = static_cast<float>(tile.origin_x);
  auto const shift_y = static_cast<float>(tile.origin_y);
  auto const width = static_cast<float>(canvas.width);
  auto const height = static_cast<float>(canvas.height);
  for (auto const& [box, label] : boxes) {
    Corners const moved{
        std::clamp(box.x1 + shift_x, 0.0f, width), std::clamp(box.y1 + shift_y, 0.0f, height),
        std::clamp(box.x2 + shift_x, 0.0f, width), std::clamp(box.y2 + shift_y, 0.0f, height)};
    if ((moved.x2 - moved.x1) * (moved.y2 - moved.y1) > 0) out.push_back({moved, label});
  }
}

}  // namespace yolohpc::data
