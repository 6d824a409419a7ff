// The one EXIF entry that matters here: Orientation.
#pragma once

#include <cstddef>
#include <span>

namespace yolohpc::data {

/// Orientation (tag 0x0112 of the first directory) of a TIFF block: what follows "Exif\0\0" in a
/// JPEG, the whole eXIf chunk of a PNG. 1 when it is missing, damaged or outside 1..8. Source: CIPA
/// DC-008 (EXIF 2.3), section 4.5 and 4.6.4.
int exif_orientation(std::span<std::byte const> tiff);

}  // namespace yolohpc::data
