// PixelView: pixels somebody else owns, and boxes with a class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "yolohpc/data/geometry.hpp"
#include "yolohpc/data/image.hpp"

namespace yolohpc::data {

/// (height, width, 3) uint8 RGB, rows without gaps. The pixels must outlive the view.
struct PixelView {
  std::uint8_t const* rgb = nullptr;
  Size size;

  std::uint8_t const* row(int y) const {
    return rgb + static_cast<std::ptrdiff_t>(y) * size.width * 3;
  }
};

inline PixelView view_of(Image const& image) {
  return {image.rgb.data(), {image.height, image.width}};
}

/// A box with its class index.
struct LabelledBox {
  Corners box;
  std::int64_t label = 0;
  bool operator==(LabelledBox const&) const = default;
};

/// A picture in memory with its boxes, ready to be augmented.
struct LoadedPicture {
  Image image;                     ///< resized on load
  std::vector<LabelledBox> boxes;  ///< pixels of `image`
  std::int64_t image_id = 0;
  std::uint32_t sample = 0;  ///< position in the data set of what the picture shows
  bool replaced = false;     ///< stands in for a record that could not be read
};

}  // namespace yolohpc::data
