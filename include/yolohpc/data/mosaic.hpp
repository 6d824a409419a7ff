// Canvas: up to four pictures side by side, described but never painted.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "yolohpc/data/pixels.hpp"

namespace yolohpc::data {

/// One picture on a canvas. It shows on columns left..right-1 and rows top..bottom-1; its own pixel
/// (0, 0) would lie at (origin_x, origin_y).
struct Tile {
  PixelView pixels;
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  int origin_x = 0;
  int origin_y = 0;
};

/// A picture of `size` made of four quarters that meet at (split_x, split_y). Quarter 0 is top
/// left, 1 top right, 2 bottom left, 3 bottom right; its tile covers a part of it or nothing. The
/// rest has the border colour, and so has everything outside.
struct Canvas {
  Size size;
  int split_x = 0;
  int split_y = 0;
  std::array<Tile, 4> tiles;
};

/// A canvas that is just one picture.
Canvas single_canvas(PixelView const& picture);

/// Four pictures whose inner corners meet at (centre_x, centre_y) on a square of 2 * image_size
/// pixels. Source: spec/data.md section 3.
Canvas mosaic_canvas(std::array<PixelView, 4> const& pictures, int image_size, int centre_x,
                     int centre_y);

/// The boxes of one picture, in its pixels, moved to where `tile` puts it, clipped to the canvas;
/// empty ones are left out. The arithmetic is float32. Source: spec/data.md section 3.
void append_canvas_boxes(std::span<LabelledBox const> boxes, Tile const& tile, Size canvas,
                         std::vector<LabelledBox>& out);

}  // namespace yolohpc::data
