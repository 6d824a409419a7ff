#include "yolohpc/data/color.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "picture_support.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

using namespace testing;

std::vector<std::uint32_t> packed(at::Tensor const& pixels) {
  std::vector<std::uint32_t> row;
  auto const* values = pixels.const_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < pixels.numel(); i += 3) {
    // The top byte is garbage on purpose: it must not matter.
    row.push_back(values[i] | static_cast<std::uint32_t>(values[i + 1]) << 8 |
                  static_cast<std::uint32_t>(values[i + 2]) << 16 | 0xAB000000u);
  }
  return row;
}

TEST(ColorJitter, AgreesWithTheFixture) {
  auto const fixture = golden_json("data/hsv.json");
  auto const tensors = golden_tensors("data/hsv.safetensors");
  auto const input = tensor_named(tensors, "input");
  auto const row = packed(input);
  auto const side = static_cast<int>(row.size());
  double const bound = bound_in(fixture.at("tolerance").get<std::string>(), "max abs diff <=");
  for (auto const& one : fixture.at("cases")) {
    auto const name = one.at("name").get<std::string>();
    SCOPED_TRACE(name);
    auto const& r = one.at("r");
    ColorJitter const jitter({r.at(0).get<double>(), r.at(1).get<double>(), r.at(2).get<double>()});
    auto const tables = tensor_named(tensors, name + ".lut");
    auto const* table = tables.const_data_ptr<std::uint8_t>();
    EXPECT_TRUE(std::equal(jitter.hue().begin(), jitter.hue().end(), table));
    EXPECT_TRUE(std::equal(jitter.saturation().begin(), jitter.saturation().end(), table + 256));
    EXPECT_TRUE(std::equal(jitter.value().begin(), jitter.value().end(), table + 512));
    std::vector<std::uint8_t> planes(row.size() * 3);
    jitter.apply_row(row.data(), side, planes.data(), planes.data() + row.size(),
                     planes.data() + 2 * row.size());
    auto const got = interleaved(planes.data(), 1, side);
    auto const expected = tensor_named(tensors, name + ".out");
    auto const difference =
        pixel_difference(got.data(), expected.const_data_ptr<std::uint8_t>(), got.size());
    EXPECT_LE(difference.max, bound);
    // Truncation on the way back, not rounding: rounding is off by 0.25 on average (README of the
    // fixtures), truncation by at most 0.07.
    EXPECT_LE(difference.mean, 0.1);
  }
}

TEST(ColorJitter, ConvertsToHsvExactly) {
  auto const tensors = golden_tensors("data/hsv.safetensors");
  auto const input = tensor_named(tensors, "input");
  auto const hsv = tensor_named(tensors, "input_hsv_8bit");
  auto const* rgb = input.const_data_ptr<std::uint8_t>();
  auto const* expected = hsv.const_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < input.numel(); i += 3) {
    auto const got = hsv_of(rgb[i], rgb[i + 1], rgb[i + 2]);
    ASSERT_EQ(got.hue, expected[i]) << "pixel " << i / 3;
    ASSERT_EQ(got.saturation, expected[i + 1]) << "pixel " << i / 3;
    ASSERT_EQ(got.value, expected[i + 2]) << "pixel " << i / 3;
  }
}

/// The tables of spec/data.md section 7, in double: what the float quotients of the code must
/// equal.
Hsv hsv_by_table(int red, int green, int blue) {
  int const value = std::max({red, green, blue});
  int const range = value - std::min({red, green, blue});
  auto const table = [](double scale, int i) {
    return i == 0 ? 0 : static_cast<int>(std::nearbyint(scale / i));
  };
  int const saturation = (range * table(255.0 * 4096, value) + 2048) >> 12;
  int numerator = red - green + 4 * range;
  if (value == green) numerator = blue - red + 2 * range;
  if (value == red) numerator = green - blue;
  int hue = (numerator * table(180.0 * 4096 / 6, range) + 2048) >> 12;
  if (hue < 0) hue += 180;
  return {static_cast<std::uint8_t>(hue), static_cast<std::uint8_t>(saturation),
          static_cast<std::uint8_t>(value)};
}

TEST(ColorJitter, QuotientsEqualTheTablesForEveryRange) {
  for (int high = 0; high < 256; ++high) {
    for (int low = 0; low <= high; ++low) {
      int const middle = (high + 2 * low) / 3;
      int const orders[6][3] = {{high, middle, low}, {high, low, middle}, {middle, high, low},
                                {low, high, middle}, {middle, low, high}, {low, middle, high}};
      for (auto const& [r, g, b] : orders) {
        auto const got = hsv_of(static_cast<std::uint8_t>(r), static_cast<std::uint8_t>(g),
                                static_cast<std::uint8_t>(b));
        auto const expected = hsv_by_table(r, g, b);
        ASSERT_EQ(got.hue, expected.hue) << r << " " << g << " " << b;
        ASSERT_EQ(got.saturation, expected.saturation) << r << " " << g << " " << b;
        ASSERT_EQ(got.value, expected.value) << r << " " << g << " " << b;
      }
    }
  }
}

// The six-case table of spec/data.md section 7 in exact integers, against the one formula of the
// code.
TEST(ColorJitter, TheWayBackTruncatesExactly) {
  ColorJitter const same({0, 0, 0});
  for (int red = 0; red < 256; red += 3) {
    for (int green = 0; green < 256; green += 3) {
      for (int blue = 0; blue < 256; blue += 5) {
        std::uint32_t const pixel = static_cast<std::uint32_t>(red | green << 8 | blue << 16);
        std::uint8_t r = 0;
        std::uint8_t g = 0;
        std::uint8_t b = 0;
        same.apply_row(&pixel, 1, &r, &g, &b);
        auto const hsv = hsv_by_table(red, green, blue);
        int const f = hsv.hue % 30;
        int const v = hsv.value;
        int const s = hsv.saturation;
        int const p = v * (7650 - s * 30) / 7650;
        int const q = v * (7650 - s * f) / 7650;
        int const t = v * (7650 - s * (30 - f)) / 7650;
        int const table[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
        auto const& expected = table[hsv.hue / 30];
        ASSERT_EQ(r, expected[0]) << red << " " << green << " " << blue;
        ASSERT_EQ(g, expected[1]) << red << " " << green << " " << blue;
        ASSERT_EQ(b, expected[2]) << red << " " << green << " " << blue;
      }
    }
  }
}

}  // namespace
}  // namespace yolohpc::data
