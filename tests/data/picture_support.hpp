// Test pictures: views of fixture tensors, drawn rectangles, and comparisons of pixel values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "yolohpc/base/safetensors.hpp"
#include "yolohpc/data/pixels.hpp"

namespace yolohpc::testing {

inline bool has_tensor(base::Safetensors const& file, std::string const& name) {
  for (auto const& entry : file.tensors) {
    if (entry.name == name) return true;
  }
  return false;
}

inline at::Tensor tensor_named(base::Safetensors const& file, std::string const& name) {
  for (auto const& [key, tensor] : file.tensors) {
    if (key == name) return tensor;
  }
  ADD_FAILURE() << "the fixture has no tensor " << name;
  return {};
}

/// (h, w, 3) or (h, w, 1) uint8 as a picture; grey is replicated.
inline data::Image image_from(at::Tensor const& pixels) {
  data::Image image;
  image.height = static_cast<int>(pixels.size(0));
  image.width = static_cast<int>(pixels.size(1));
  auto const channels = pixels.size(2);
  auto const* values = pixels.const_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < pixels.size(0) * pixels.size(1); ++i) {
    for (std::int64_t c = 0; c < 3; ++c) {
      image.rgb.push_back(values[i * channels + std::min(c, channels - 1)]);
    }
  }
  return image;
}

/// (n, 4) float32 and (n) float32 classes as boxes.
inline std::vector<data::LabelledBox> boxes_from(at::Tensor const& boxes,
                                                 at::Tensor const& labels) {
  std::vector<data::LabelledBox> result;
  auto const* b = boxes.const_data_ptr<float>();
  for (std::int64_t i = 0; i < boxes.size(0); ++i) {
    std::int64_t label = 0;
    if (labels.defined()) label = static_cast<std::int64_t>(labels.const_data_ptr<float>()[i]);
    result.push_back({{b[4 * i], b[4 * i + 1], b[4 * i + 2], b[4 * i + 3]}, label});
  }
  return result;
}

/// How far two runs of bytes are apart, in levels of 255.
struct PixelDifference {
  int max = 0;
  double mean = 0;
  double share_above_2 = 0;
};

inline PixelDifference pixel_difference(std::uint8_t const* a, std::uint8_t const* b,
                                        std::size_t count) {
  PixelDifference difference;
  double sum = 0;
  double above = 0;
  for (std::size_t i = 0; i < count; ++i) {
    int const distance = std::abs(a[i] - b[i]);
    difference.max = std::max(difference.max, distance);
    sum += distance;
    above += distance > 2 ? 1 : 0;
  }
  difference.mean = sum / static_cast<double>(count);
  difference.share_above_2 = above / static_cast<double>(count);
  return difference;
}

/// The number that follows `name` in a tolerance written as text, such as "max <= 8, mean <= 0.35".
inline double bound_in(std::string const& text, std::string const& name) {
  auto const at = text.find(name);
  EXPECT_NE(at, std::string::npos) << "no \"" << name << "\" in the tolerance: " << text;
  if (at == std::string::npos) return -1;
  auto const digits = text.find_first_of("0123456789", at + name.size());
  return std::strtod(text.c_str() + digits, nullptr);
}

/// (H, W, 3) interleaved from (3, H, W) planes.
inline std::vector<std::uint8_t> interleaved(std::uint8_t const* planes, int height, int width) {
  auto const plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  std::vector<std::uint8_t> rgb(plane * 3);
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t c = 0; c < 3; ++c) rgb[3 * i + c] = planes[c * plane + i];
  }
  return rgb;
}

/// A picture of one colour.
inline data::Image plain_picture(int width, int height, std::uint8_t r, std::uint8_t g,
                                 std::uint8_t b) {
  data::Image image;
  image.width = width;
  image.height = height;
  for (int i = 0; i < width * height; ++i) image.rgb.insert(image.rgb.end(), {r, g, b});
  return image;
}

/// Fills columns x1..x2-1, rows y1..y2-1.
inline void fill_rectangle(data::Image& image, int x1, int y1, int x2, int y2, std::uint8_t r,
                           std::uint8_t g, std::uint8_t b) {
  for (int y = y1; y < y2; ++y) {
    for (int x = x1; x < x2; ++x) {
      auto* pixel = image.rgb.data() + (static_cast<std::ptrdiff_t>(y) * image.width + x) * 3;
      pixel[0] = r;
      pixel[1] = g;
      pixel[2] = b;
    }
  }
}

}  // namespace yolohpc::testing
