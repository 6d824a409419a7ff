#include "yolohpc/data/affine.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace yolohpc::data {
namespace {

Matrix product(Matrix const& a, Matrix const& b) {
  Matrix result{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < 3; ++k) sum += a[3 * row + k] * b[3 * k + column];
      result[3 * row + column] = sum;
    }
  }
  return result;
}

Matrix shift(double x, double y) {
  return {1, 0, static_cast<float>(x), 0, 1, static_cast<float>(y), 0, 0, 1};
}

double radians(double degrees) {
  return degrees * std::numbers::pi / 180.0;
}

}  // namespace

Matrix affine_matrix(AffineDraw const& draw, Size input, Size output) {
  auto const cosine = static_cast<float>(draw.scale * std::cos(radians(draw.angle_deg)));
  auto const sine = static_cast<float>(draw.scale * std::sin(radians(draw.angle_deg)));
  Matrix const centre = shift(-input.width / 2.0, -input.height / 2.0);
  Matrix const turn{cosine, sine, 0, -sine, cosine, 0, 0, 0, 1};
  Matrix const shear{1, static_cast<float>(std::tan(radians(draw.shear_x_deg))),
                     0, static_cast<float>(std::tan(radians(draw.shear_y_deg))),
                     1, 0,
                     0, 0,
                     1};
  Matrix const place = shift(draw.centre_x * output.width, draw.centre_y * output.height);
  return product(product(product(place, shear), turn), centre);
}

Corners mapped_box(Corners const& box, Matrix const& m) {
  std::array<float, 4> const xs{box.x1, box.x2, box.x1, box.x2};
  std::array<float, 4> const ys{box.y1, box.y2, box.y2, box.y1};
  std::array<float, 4> mapped_x{};
  std::array<float, 4> mapped_y{};
  for (std::size_t i = 0; i < 4; ++i) {
    mapped_x[i] = m[0] * xs[i] + m[1] * ys[i] + m[2];
    mapped_y[i] = m[3] * xs[i] + m[4] * ys[i] + m[5];
  }
  auto const [left, right] = std::minmax_element(mapped_x.begin(), mapped_x.end());
  auto const [top, bottom] = std::minmax_element(mapped_y.begin(), mapped_y.end());
  return {*left, *top, *right, *bottom};
}

Corners clipped_box(Corners const& box, Size picture) {
  auto const width = static_cast<float>(picture.width);
  auto const height = static_cast<float>(picture.height);
  return {std::clamp(box.x1, 0.0f, width), std::clamp(box.y1, 0.0f, height),
          std::clamp(box.x2, 0.0f, width), std::clamp(box.y2, 0.0f, height)};
}

bool keeps_box(Corners const& before, Corners const& after, float scale) {
  // Thresholds: spec/data.md section 5.
  constexpr float smallest_side_px = 2.0f;
  constexpr float least_area_left = 0.10f;
  constexpr float greatest_aspect = 100.0f;
  constexpr float tiny = 1e-16f;
  float const w1 = before.x2 * scale - before.x1 * scale;
  float const h1 = before.y2 * scale - before.y1 * scale;
  float const w2 = after.x2 - after.x1;
  float const h2 = after.y2 - after.y1;
  float const aspect = std::max(w2 / (h2 + tiny), h2 / (w2 + tiny));
  return w2 > smallest_side_px && h2 > smallest_side_px &&
         w2 * h2 / (w1 * h1 + tiny) > least_area_left && aspect < greatest_aspect;
}

std::vector<LabelledBox> mapped_boxes(std::span<LabelledBox const> boxes, Matrix const& matrix,
                                      double scale, Size output) {
  std::vector<LabelledBox> kept;
  for (auto const& [box, label] : boxes) {
    auto const after = clipped_box(mapped_box(box, matrix), output);
    if (keeps_box(box, after, static_cast<float>(scale))) kept.push_back({after, label});
  }
  return kept;
}

}  // namespace yolohpc::data
