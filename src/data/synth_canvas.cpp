#include "synth_canvas.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace yolohpc::data {
namespace {

using base::Philox;

constexpr double two_pi = 2 * std::numbers::pi;

float uniform(Philox& random, double low, double high) {
  return static_cast<float>(random.uniform(low, high));
}

bool happens(Philox& random, double probability) {
  return random.uniform() < probability;
}

float fade(double t) {
  return static_cast<float>(t * t * (3 - 2 * t));
}

// Octaves add up to values near one half; this spreads them over 0 to 1.
float stretched(float noise) {
  return std::clamp(0.5F + 2.2F * (noise - 0.5F), 0.0F, 1.0F);
}

struct Direction {
  double x;
  double y;
};

Direction random_direction(Philox& random) {
  double const angle = random.uniform(0, two_pi);
  return {std::cos(angle), std::sin(angle)};
}

// Bands across the picture: boards, fields, fabric.
void draw_stripes(Canvas& canvas, Philox& random) {
  auto const across = random_direction(random);
  double const period_px = random.uniform(8, 60);
  float const strength = uniform(random, 0.05, 0.25);
  auto const color = random_color(random);
  for (int y = 0; y < canvas.height_px; ++y) {
    for (int x = 0; x < canvas.width_px; ++x) {
      double const wave = std::sin(two_pi * (across.x * x + across.y * y) / period_px);
      auto& pixel = canvas.at(x, y);
      pixel = mixed(pixel, color, strength * static_cast<float>(0.5 + 0.5 * wave));
    }
  }
}

// A soft spot: a shadow or a glare, without an edge that a shape could have.
void draw_blotch(Canvas& canvas, Philox& random) {
  double const x0 = random.uniform(0, canvas.width_px);
  double const y0 = random.uniform(0, canvas.height_px);
  double const radius_px = random.uniform(0.1, 0.35) * canvas.width_px;
  auto const color = random_color(random);
  float const strength = uniform(random, 0.2, 0.6);
  for (int y = 0; y < canvas.height_px; ++y) {
    for (int x = 0; x < canvas.width_px; ++x) {
      double const distance = std::hypot(x - x0, y - y0) / radius_px;
      auto& pixel = canvas.at(x, y);
      pixel =
          mixed(pixel, color, strength * static_cast<float>(std::exp(-2 * distance * distance)));
    }
  }
}

// A thin straight stroke: a twig, a wire, a scratch.
void draw_stroke(Canvas& canvas, Philox& random) {
  auto const along = random_direction(random);
  double const x0 = random.uniform(0, canvas.width_px);
  double const y0 = random.uniform(0, canvas.height_px);
  double const half_length_px = random.uniform(0.05, 0.4) * canvas.width_px;
  double const half_width_px = random.uniform(0.5, 1.6);
  auto const color = random_color(random);
  for (int y = 0; y < canvas.height_px; ++y) {
    for (int x = 0; x < canvas.width_px; ++x) {
      double const t = along.x * (x - x0) + along.y * (y - y0);
      double const d = std::fabs(along.y * (x - x0) - along.x * (y - y0));
      if (std::fabs(t) > half_length_px || d > half_width_px + 1) continue;
      auto const cover = static_cast<float>(std::clamp(half_width_px + 0.5 - d, 0.0, 1.0));
      canvas.at(x, y) = mixed(canvas.at(x, y), color, cover);
    }
  }
}

std::vector<float> gaussian_kernel(double sigma_px) {
  int const radius = static_cast<int>(std::ceil(3 * sigma_px));
  std::vector<float> kernel;
  float sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    kernel.push_back(static_cast<float>(std::exp(-0.5 * i * i / (sigma_px * sigma_px))));
    sum += kernel.back();
  }
  for (auto& weight : kernel) weight /= sum;
  return kernel;
}

// One direction of the blur; edge pixels are repeated beyond the border.
Canvas blurred_along(Canvas const& source, std::vector<float> const& kernel, int step_x,
                     int step_y) {
  Canvas result = source;
  int const radius = static_cast<int>(kernel.size() / 2);
  for (int y = 0; y < source.height_px; ++y) {
    for (int x = 0; x < source.width_px; ++x) {
      Color sum{};
      for (int i = -radius; i <= radius; ++i) {
        auto const& pixel = source.at(std::clamp(x + i * step_x, 0, source.width_px - 1),
                                      std::clamp(y + i * step_y, 0, source.height_px - 1));
        float const weight = kernel[static_cast<std::size_t>(i + radius)];
        for (std::size_t c = 0; c < 3; ++c) sum[c] += weight * pixel[c];
      }
      result.at(x, y) = sum;
    }
  }
  return result;
}

}  // namespace

Color random_color(Philox& random) {
  return {uniform(random, 0.03, 0.97), uniform(random, 0.03, 0.97), uniform(random, 0.03, 0.97)};
}

Color mixed(Color const& a, Color const& b, float share) {
  Color result;
  for (std::size_t c = 0; c < 3; ++c) result[c] = a[c] + share * (b[c] - a[c]);
  return result;
}

float color_distance(Color const& a, Color const& b) {
  float sum = 0;
  for (std::size_t c = 0; c < 3; ++c) sum += (a[c] - b[c]) * (a[c] - b[c]);
  return std::sqrt(sum);
}

ValueNoise::ValueNoise(Philox& random, double period_px, int octaves)
    : key_(random.next()), period_px_(period_px), octaves_(octaves) {}

float ValueNoise::lattice(std::int64_t x, std::int64_t y, std::uint32_t octave) const {
  // A counter hashed by the finaliser of MurmurHash3 (A. Appleby, public domain): this is called
  // sixteen times for each pixel, and texture needs no better randomness.
  std::uint32_t hash = key_ ^ static_cast<std::uint32_t>(x) * 0x9E3779B1U ^
                       static_cast<std::uint32_t>(y) * 0x85EBCA77U ^ octave * 0xC2B2AE3DU;
  hash = (hash ^ hash >> 16) * 0x85EBCA6BU;
  hash = (hash ^ hash >> 13) * 0xC2B2AE35U;
  hash ^= hash >> 16;
  constexpr float scale = 1.0F / 16777216.0F;  // 2^-24
  return static_cast<float>(hash >> 8) * scale;
}

float ValueNoise::octave(double x, double y, std::uint32_t octave) const {
  auto const x0 = static_cast<std::int64_t>(std::floor(x));
  auto const y0 = static_cast<std::int64_t>(std::floor(y));
  float const u = fade(x - static_cast<double>(x0));
  float const v = fade(y - static_cast<double>(y0));
  float const above = std::lerp(lattice(x0, y0, octave), lattice(x0 + 1, y0, octave), u);
  float const below = std::lerp(lattice(x0, y0 + 1, octave), lattice(x0 + 1, y0 + 1, octave), u);
  return std::lerp(above, below, v);
}

float ValueNoise::operator()(double x, double y) const {
  float sum = 0;
  float weight = 1;
  float total = 0;
  double period_px = period_px_;
  for (int i = 0; i < octaves_; ++i, weight /= 2, period_px /= 2) {
    sum += weight * octave(x / period_px, y / period_px, static_cast<std::uint32_t>(i));
    total += weight;
  }
  return sum / total;
}

Canvas draw_background(int width_px, int height_px, Philox& random) {
  Canvas canvas{width_px, height_px,
                std::vector<Color>(static_cast<std::size_t>(width_px) * height_px)};
  auto const from = random_color(random);
  auto const to = mixed(from, random_color(random), uniform(random, 0.2, 0.7));
  auto const speckle = random_color(random);
  float const roughness = uniform(random, 0.15, 0.75);
  auto const along = random_direction(random);
  double const length_px = std::hypot(width_px, height_px);
  ValueNoise const noise(random, random.uniform(12, 90), 4);
  for (int y = 0; y < height_px; ++y) {
    for (int x = 0; x < width_px; ++x) {
      double const t =
          0.5 + (along.x * (x - width_px / 2.0) + along.y * (y - height_px / 2.0)) / length_px;
      auto const ground = mixed(from, to, static_cast<float>(std::clamp(t, 0.0, 1.0)));
      canvas.at(x, y) = mixed(ground, speckle, roughness * stretched(noise(x, y)));
    }
  }
  if (happens(random, 0.3)) draw_stripes(canvas, random);
  for (auto left = random.below(3); left > 0; --left) draw_blotch(canvas, random);
  for (auto left = random.below(4); left > 0; --left) draw_stroke(canvas, random);
  return canvas;
}

void expose_in_place(Canvas& canvas, Philox& random) {
  if (happens(random, 0.5)) {
    auto const kernel = gaussian_kernel(random.uniform(0.4, 1.1));
    canvas = blurred_along(blurred_along(canvas, kernel, 1, 0), kernel, 0, 1);
  }
  float const contrast = uniform(random, 0.75, 1.15);
  float const brightness = uniform(random, -0.08, 0.08);
  double const grain = random.uniform(0, 0.035);
  for (auto& pixel : canvas.pixels) {
    auto const grey = static_cast<float>(grain * random.normal());
    for (auto& value : pixel) value = 0.5F + contrast * (value - 0.5F) + brightness + grey;
  }
}

std::vector<std::uint8_t> to_bytes(Canvas const& canvas) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(3 * canvas.pixels.size());
  for (auto const& pixel : canvas.pixels) {
    for (float const value : pixel) {
      bytes.push_back(static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0F, 1.0F))));
    }
  }
  return bytes;
}

}  // namespace yolohpc::data
