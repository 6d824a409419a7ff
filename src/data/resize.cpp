#include "yolohpc/data/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "yolohpc/base/error.hpp"
#include "yolohpc/data/vectorised.hpp"

namespace yolohpc::data {
namespace {

using FourFloats = float __attribute__((vector_size(16)));
using FourInts = std::int32_t __attribute__((vector_size(16)));
using FourBytes = std::uint8_t __attribute__((vector_size(4)));

inline FourFloats load_four(float const* from) {
  FourFloats values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

/// Drops the unused top byte of each pixel.
void pack_triples(std::uint32_t const* pixels, int count, std::uint8_t* rgb) {
  // Four bytes are written for each pixel but the last, whose fourth byte would lie outside.
  for (int x = 0; x + 1 < count; ++x) std::memcpy(rgb + 3 * x, pixels + x, 4);
  std::memcpy(rgb + 3 * (count - 1), pixels + count - 1, 3);
}

}  // namespace

std::vector<Tap> resize_taps(int in, int out) {
  constexpr double weight_steps = 2048;  // 11 bits
  std::vector<Tap> taps(static_cast<std::size_t>(out));
  double const step = static_cast<double>(in) / out;
  for (int i = 0; i < out; ++i) {
    double const position = (i + 0.5) * step - 0.5;
    int const first = static_cast<int>(std::floor(position));
    double const weight = std::nearbyint((position - first) * weight_steps) / weight_steps;
    auto& tap = taps[static_cast<std::size_t>(i)];
    tap = {first, static_cast<float>(weight)};
    if (first < 0) tap = {0, 0};
    if (first >= in - 1) tap = {in - 1, 0};
  }
  return taps;
}

YOLOHPC_VECTOR_CLONES
void blend_rows(std::uint8_t const* __restrict a, std::uint8_t const* __restrict b, float weight,
                int count, float* __restrict out) {
  for (int i = 0; i < count; ++i) {
    float const first = static_cast<float>(a[i]);
    out[i] = first + (static_cast<float>(b[i]) - first) * weight;
  }
}

YOLOHPC_VECTOR_CLONES
void interpolate_columns(float const* __restrict row, std::int32_t const* __restrict offsets,
                         float const* __restrict weights, int count,
                         std::uint32_t* __restrict out) {
  for (int x = 0; x < count; ++x) {
    FourFloats const a = load_four(row + offsets[x]);
    FourFloats const b = load_four(row + offsets[x] + 3);
    FourFloats const value = a + (b - a) * weights[x] + 0.5f;
    auto const bytes = __builtin_convertvector(__builtin_convertvector(value, FourInts), FourBytes);
    std::memcpy(out + x, &bytes, sizeof bytes);
  }
}

void resize_bilinear(PixelView const& picture, Size size, Image& out) {
  YOLOHPC_CHECK(size.height >= 1 && size.width >= 1, "a picture cannot be resized to ", size.width,
                " x ", size.height, " pixels (both sides need at least 1)");
  out.width = size.width;
  out.height = size.height;
  auto const row_bytes = static_cast<std::size_t>(size.width) * 3;
  out.rgb.resize(row_bytes * static_cast<std::size_t>(size.height));
  if (size == picture.size) {
    std::copy_n(picture.rgb, out.rgb.size(), out.rgb.data());
    return;
  }
  auto const column_taps = resize_taps(picture.size.width, size.width);
  auto const row_taps = resize_taps(picture.size.height, size.height);
  std::vector<std::int32_t> offsets;
  std::vector<float> weights;
  for (auto const& tap : column_taps) {
    offsets.push_back(3 * tap.first);
    weights.push_back(tap.weight);
  }
  int const width = picture.size.width;
  // One more pixel than the row: the last column is a pair with weight 0.
  std::vector<float> blended(static_cast<std::size_t>(width + 2) * 3);
  std::vector<std::uint32_t> pixels(static_cast<std::size_t>(size.width));
  for (int y = 0; y < size.height; ++y) {
    auto const& tap = row_taps[static_cast<std::size_t>(y)];
    int const next = std::min(tap.first + 1, picture.size.height - 1);
    blend_rows(picture.row(tap.first), picture.row(next), tap.weight, width * 3, blended.data());
    interpolate_columns(blended.data(), offsets.data(), weights.data(), size.width, pixels.data());
    pack_triples(pixels.data(), size.width,
                 out.rgb.data() + static_cast<std::size_t>(y) * row_bytes);
  }
}

}  // namespace yolohpc::data
