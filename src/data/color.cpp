#include "yolohpc/data/color.hpp"

#include <algorithm>
#include <cmath>

#include "yolohpc/data/vectorised.hpp"

namespace yolohpc::data {
namespace {

/// Hue counts half degrees, so that a turn fits a byte; six sectors of 30.
constexpr int hue_turn = 180;
constexpr int hue_sector = 30;
/// Fixed point of the conversion: 12 bits.
constexpr int fraction_bits = 12;
constexpr int half = 1 << (fraction_bits - 1);
/// 255 * 4096, whose quotient by V is the table A of the source, and 180 * 4096 / 6 for table B.
constexpr float saturation_scale = 255.0f * 4096.0f;
constexpr float hue_scale = 180.0f * 4096.0f / 6.0f;

/// Pixels handled at a time: intermediate rows stay in the first cache.
constexpr int chunk = 256;

struct HsvRows {
  std::array<std::int32_t, chunk> hue;
  std::array<std::int32_t, chunk> saturation;
  std::array<std::int32_t, chunk> value;
};

/// The nearest integer to scale / divisor. No quotient of these two scales by 1..255 is a tie, and
/// float is exact enough for all of them (tested).
inline std::int32_t rounded_quotient(float scale, std::int32_t divisor) {
  return static_cast<std::int32_t>(scale / static_cast<float>(divisor) + 0.5f);
}

YOLOHPC_VECTOR_CLONES
void to_hsv(std::uint32_t const* __restrict pixels, int count, HsvRows& rows) {
  std::int32_t* __restrict const hues = rows.hue.data();
  std::int32_t* __restrict const saturations = rows.saturation.data();
  std::int32_t* __restrict const values = rows.value.data();
  for (int i = 0; i < count; ++i) {
    auto const red = static_cast<std::int32_t>(pixels[i] & 255u);
    auto const green = static_cast<std::int32_t>(pixels[i] >> 8 & 255u);
    auto const blue = static_cast<std::int32_t>(pixels[i] >> 16 & 255u);
    std::int32_t const value = std::max(std::max(red, green), blue);
    std::int32_t const range = value - std::min(std::min(red, green), blue);
    // 0 becomes 1. Masks instead of branches or std::max, which would keep the compiler from
    // vectorising.
    std::int32_t const a = rounded_quotient(saturation_scale, value | static_cast<int>(value == 0));
    std::int32_t const b = rounded_quotient(hue_scale, range | static_cast<int>(range == 0));
    std::int32_t const is_red = -static_cast<std::int32_t>(value == red);
    std::int32_t const is_green = ~is_red & -static_cast<std::int32_t>(value == green);
    std::int32_t const is_blue = ~(is_red | is_green);
    std::int32_t const numerator = (is_red & (green - blue)) |
                                   (is_green & (blue - red + 2 * range)) |
                                   (is_blue & (red - green + 4 * range));
    std::int32_t const hue = (numerator * b + half) >> fraction_bits;
    hues[i] = hue + (hue_turn & -static_cast<std::int32_t>(hue < 0));
    saturations[i] = (range * a + half) >> fraction_bits;
    values[i] = value;
  }
}

/// One channel of the way back; `turn` is 30 * (5, 3, 1) for R, G, B.
///
/// With k = (turn + hue) mod 180 and c = clamp(min(k, 120 - k), 0, 30) the channel is V (1 - S/255
/// c/30), which is the six-case table of the source in one formula. V (7650 - S c) is an integer
/// below 2^24, so float holds it, and half a step of 1/7650 added before the product makes the
/// truncation exact.
inline std::int32_t channel(std::int32_t hue, std::int32_t saturation, std::int32_t value,
                            std::int32_t turn) {
  constexpr std::int32_t full = 255 * hue_sector;
  std::int32_t const turned = hue + turn;
  std::int32_t const k = turned >= hue_turn ? turned - hue_turn : turned;
  std::int32_t const c = std::clamp(std::min(k, 4 * hue_sector - k), 0, hue_sector);
  auto const product = static_cast<float>(value * (full - saturation * c));
  return static_cast<std::int32_t>((product + 0.5f) * (1.0f / static_cast<float>(full)));
}

YOLOHPC_VECTOR_CLONES
void from_hsv(HsvRows const& rows, int count, std::uint8_t* __restrict red,
              std::uint8_t* __restrict green, std::uint8_t* __restrict blue) {
  std::int32_t const* __restrict const hues = rows.hue.data();
  std::int32_t const* __restrict const saturations = rows.saturation.data();
  std::int32_t const* __restrict const values = rows.value.data();
  for (int i = 0; i < count; ++i) {
    red[i] = static_cast<std::uint8_t>(channel(hues[i], saturations[i], values[i], 5 * hue_sector));
    green[i] =
        static_cast<std::uint8_t>(channel(hues[i], saturations[i], values[i], 3 * hue_sector));
    blue[i] = static_cast<std::uint8_t>(channel(hues[i], saturations[i], values[i], hue_sector));
  }
}

std::uint8_t truncated(double value) {
  return static_cast<std::uint8_t>(value);
}

}  // namespace

Hsv hsv_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  std::uint32_t const pixel =
      red | static_cast<std::uint32_t>(green) << 8 | static_cast<std::uint32_t>(blue) << 16;
  HsvRows rows;
  to_hsv(&pixel, 1, rows);
  return {static_cast<std::uint8_t>(rows.hue[0]), static_cast<std::uint8_t>(rows.saturation[0]),
          static_cast<std::uint8_t>(rows.value[0])};
}

ColorJitter::ColorJitter(ColorDraw const& draw) {
  for (std::size_t i = 0; i < 256; ++i) {
    auto const x = static_cast<double>(i);
    double const hue = std::fmod(x + hue_turn * draw.hue, hue_turn);
    hue_[i] = truncated(hue < 0 ? hue + hue_turn : hue);
    // A tiny negative remainder can round up to a whole turn.
    if (hue_[i] >= hue_turn) hue_[i] = 0;
    saturation_[i] = truncated(std::clamp(x * (1 + draw.saturation), 0.0, 255.0));
    value_[i] = truncated(std::clamp(x * (1 + draw.value), 0.0, 255.0));
  }
  saturation_[0] = 0;
}

void ColorJitter::apply_row(std::uint32_t const* pixels, int count, std::uint8_t* red,
                            std::uint8_t* green, std::uint8_t* blue) const {
  HsvRows rows;
  for (int first = 0; first < count; first += chunk) {
    int const here = std::min(chunk, count - first);
    to_hsv(pixels + first, here, rows);
    for (std::size_t i = 0; i < static_cast<std::size_t>(here); ++i) {
      rows.hue[i] = hue_[static_cast<std::size_t>(rows.hue[i])];
      rows.saturation[i] = saturation_[static_cast<std::size_t>(rows.saturation[i])];
      rows.value[i] = value_[static_cast<std::size_t>(rows.value[i])];
    }
    from_hsv(rows, here, red + first, green + first, blue + first);
  }
}

}  // namespace yolohpc::data
