// Bilinear resize of 8-bit pictures, and the two inner loops it shares with the affine warp.
#pragma once

#include <cstdint>
#include <vector>

#include "yolohpc/data/pixels.hpp"

namespace yolohpc::data {

/// Where an output column (or row) reads: between the input columns i and i + 1, weight of the
/// second.
struct Tap {
  int first = 0;
  float weight = 0;
};

/// Taps of one axis of a resize from `in` to `out` pixels: half-pixel centres, no antialias, edges
/// clamped so that `first` lies in 0 .. in-1; weights in steps of 1/2048 like the reference
/// library. Source: spec/data.md section 2.
std::vector<Tap> resize_taps(int in, int out);

/// Bilinear resize, results rounded half up. At most 1 level from the reference library.
/// \param out  receives the picture; its memory is reused
/// \throws Error  a side of `size` is below 1
/// Source: spec/data.md section 2.
void resize_bilinear(PixelView const& picture, Size size, Image& out);

/// out[i] = a[i] + (b[i] - a[i]) * weight for i < count.
void blend_rows(std::uint8_t const* a, std::uint8_t const* b, float weight, int count, float* out);

/// Interpolates along a row of RGB triples and packs each result as R | G << 8 | B << 16, rounded
/// half up; the top byte is unspecified.
///
/// \param row      triples of floats in 0..255; of each pair of columns and one float beyond it is
/// read
///
/// \param offsets  3 * first column of the pair, for each of `count` results
///
/// \param weights  weight of the second column of the pair
void interpolate_columns(float const* row, std::int32_t const* offsets, float const* weights,
                         int count, std::uint32_t* out);

}  // namespace yolohpc::data
