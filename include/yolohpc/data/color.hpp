// HSV jitter of 8-bit pixels.
#pragma once

#include <array>
#include <cstdint>

namespace yolohpc::data {

/// Gains of hue, saturation and value: already the product of the drawn number in [-1, 1) and the
/// setting.
struct ColorDraw {
  double hue = 0;
  double saturation = 0;
  double value = 0;
};

/// Hue 0..179, saturation and value 0..255.
struct Hsv {
  std::uint8_t hue = 0;
  std::uint8_t saturation = 0;
  std::uint8_t value = 0;
};

/// The 8-bit conversion in integers. Source: spec/data.md section 7.
Hsv hsv_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue);

/// Three tables and their use on a row.
class ColorJitter {
 public:
  using Table = std::array<std::uint8_t, 256>;

  /// Tables in double, truncated. Source: spec/data.md section 7.
  explicit ColorJitter(ColorDraw const& draw);

  Table const& hue() const { return hue_; }
  Table const& saturation() const { return saturation_; }
  Table const& value() const { return value_; }

  /// Converts packed pixels (R | G << 8 | B << 16) to HSV, through the tables, back (truncating),
  /// into three rows of `count` bytes.
  void apply_row(std::uint32_t const* pixels, int count, std::uint8_t* red, std::uint8_t* green,
                 std::uint8_t* blue) const;

 private:
  Table hue_{};
  Table saturation_{};
  Table value_{};
};

}  // namespace yolohpc::data
