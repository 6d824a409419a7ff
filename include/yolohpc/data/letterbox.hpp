// Letterboxing pixels: a picture between borders, as planes.
#pragma once

#include <cstdint>

#include "yolohpc/data/pixels.hpp"

namespace yolohpc::data {

/// Writes the picture as the letterbox says, with borders of `border_colour`; resizes only if the
/// size differs.
///
/// \param planes   (3, H, W) uint8 of the letterbox's target size, R then G then B
///
/// \param scratch  memory for a resize, reused from call to call
///
/// Source: spec/data.md section 6.
void write_letterbox(PixelView const& picture, Letterbox const& placed, std::uint8_t* planes,
                     Image& scratch);

}  // namespace yolohpc::data
