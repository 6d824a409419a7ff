#include "yolohpc/boxes/iou.hpp"

#include <cmath>
#include <numbers>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::boxes {
namespace {

constexpr double epsilon = 1e-7;  // spec/loss.md, section 6

void check_corners(at::Tensor const& t, char const* name) {
  YOLOHPC_CHECK(t.dim() >= 1 && t.size(-1) == 4, name, " has shape ", t.sizes(),
                " (corners need (..., 4))");
  YOLOHPC_CHECK(t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble, name, " has type ",
                t.scalar_type(), " (half precision overflows in areas; cast to float32 first)");
}

struct Sides {
  at::Tensor width, height;
};

Sides sides(Corners const& box) {
  return {box.x2 - box.x1, box.y2 - box.y1 + epsilon};
}

/// alpha of the aspect term. The caller's gradient must not see it.
at::Tensor trade_off(at::Tensor const& iou, at::Tensor const& v) {
  at::NoGradGuard const no_grad;
  return v / (v - iou + (1 + epsilon));
}

}  // namespace

Corners split_corners(at::Tensor const& corners, std::int64_t dim) {
  return {corners.select(dim, 0), corners.select(dim, 1), corners.select(dim, 2),
          corners.select(dim, 3)};
}

at::Tensor aspect_angle(Corners const& box) {
  auto const [width, height] = sides(box);
  return at::atan(width / height);
}

at::Tensor complete_iou(Corners const& a, at::Tensor const& angle_a, Corners const& b,
                        at::Tensor const& angle_b) {
  auto const [width_a, height_a] = sides(a);
  auto const [width_b, height_b] = sides(b);
  auto const overlap = at::clamp_min(at::minimum(a.x2, b.x2) - at::maximum(a.x1, b.x1), 0) *
                       at::clamp_min(at::minimum(a.y2, b.y2) - at::maximum(a.y1, b.y1), 0);
  auto const joined = width_a * height_a + (width_b * height_b + epsilon) - overlap;
  auto const iou = overlap / joined;
  auto const enclosing_width = at::maximum(a.x2, b.x2) - at::minimum(a.x1, b.x1);
  auto const enclosing_height = at::maximum(a.y2, b.y2) - at::minimum(a.y1, b.y1);
  auto const diagonal2 = at::square(enclosing_width) + at::square(enclosing_height) + epsilon;
  // Twice the offset of the centres.
  auto const dx2 = (b.x1 + b.x2) - (a.x1 + a.x2);
  auto const dy2 = (b.y1 + b.y2) - (a.y1 + a.y2);
  auto const distance2 = (at::square(dx2) + at::square(dy2)) / 4;
  auto const v = at::square(angle_b - angle_a) * (4 / (std::numbers::pi * std::numbers::pi));
  return iou - (distance2 / diagonal2 + v * trade_off(iou, v));
}

at::Tensor complete_iou(Corners const& a, Corners const& b) {
  return complete_iou(a, aspect_angle(a), b, aspect_angle(b));
}

at::Tensor complete_iou(at::Tensor const& a, at::Tensor const& b) {
  check_corners(a, "a");
  check_corners(b, "b");
  return complete_iou(split_corners(a), split_corners(b));
}

}  // namespace yolohpc::boxes
