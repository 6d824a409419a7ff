#include "yolohpc/data/geometry.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "yolohpc/base/error.hpp"

namespace yolohpc::data {
namespace {

void check_size(Size size, char const* what) {
  YOLOHPC_CHECK(size.height >= 1 && size.width >= 1, what, " is ", size.width, " x ", size.height,
                " pixels (width x height; both sides need at least 1)");
}

/// Half to even: the default rounding mode, which nothing in this program changes.
int round_half_even(double value) {
  return static_cast<int>(std::nearbyint(value));
}

/// Unequal shares of an odd border: the spare pixel goes to the far side.
/// Source: spec/data.md section 6.
struct Border {
  int near = 0;
  int far = 0;
};
Border halve_border(int border) {
  constexpr double nudge = 0.1;
  double const half = border / 2.0;
  return {round_half_even(half - nudge), round_half_even(half + nudge)};
}

}  // namespace

Size loaded_size(Size original, int image_size) {
  check_size(original, "a picture");
  YOLOHPC_CHECK(image_size >= 1, "the image size is ", image_size,
                " pixels (at least 1 is needed)");
  int const longest = std::max(original.height, original.width);
  if (longest == image_size) return original;
  double const ratio = static_cast<double>(image_size) / longest;
  auto const scaled = [&](int side) {
    return std::min(static_cast<int>(std::ceil(side * ratio)), image_size);
  };
  return {scaled(original.height), scaled(original.width)};
}

Letterbox letterbox(Size picture, Size target, ScaleUp scale_up, Placement placement, int stride) {
  check_size(picture, "a picture");
  check_size(target, "the target of a letterbox");
  Letterbox placed;
  placed.ratio = std::min(static_cast<double>(target.height) / picture.height,
                          static_cast<double>(target.width) / picture.width);
  if (scale_up == ScaleUp::no) placed.ratio = std::min(placed.ratio, 1.0);
  placed.resized.height = std::max(round_half_even(picture.height * placed.ratio), 1);
  placed.resized.width = std::max(round_half_even(picture.width * placed.ratio), 1);
  int border_x = target.width - placed.resized.width;
  int border_y = target.height - placed.resized.height;
  if (placement == Placement::top_left) {
    placed.right = border_x;
    placed.bottom = border_y;
    return placed;
  }
  if (placement == Placement::minimum_rectangle) {
    border_x %= stride;
    border_y %= stride;
  }
  auto const x = halve_border(border_x);
  auto const y = halve_border(border_y);
  placed.left = x.near;
  placed.right = x.far;
  placed.top = y.near;
  placed.bottom = y.far;
  return placed;
}

ImageGeometry image_geometry(Size original, Size loaded, Letterbox const& placed) {
  ImageGeometry geometry;
  geometry.original = original;
  geometry.gain_x = static_cast<double>(loaded.width) / original.width * placed.ratio;
  geometry.gain_y = static_cast<double>(loaded.height) / original.height * placed.ratio;
  geometry.pad_x = placed.left;
  geometry.pad_y = placed.top;
  return geometry;
}

ImageGeometry guessed_geometry(Size original, Size network) {
  auto const placed = letterbox(original, network, ScaleUp::yes);
  ImageGeometry geometry;
  geometry.original = original;
  geometry.gain_x = static_cast<double>(placed.resized.width) / original.width;
  geometry.gain_y = static_cast<double>(placed.resized.height) / original.height;
  geometry.pad_x = placed.left;
  geometry.pad_y = placed.top;
  return geometry;
}

Corners to_original(Corners const& box_px, ImageGeometry const& geometry) {
  auto const back = [](float value, int pad, double gain, int limit) {
    auto const original = static_cast<float>((value - static_cast<float>(pad)) / gain);
    return std::clamp(original, 0.0f, static_cast<float>(limit));
  };
  auto const& g = geometry;
  return {back(box_px.x1, g.pad_x, g.gain_x, g.original.width),
          back(box_px.y1, g.pad_y, g.gain_y, g.original.height),
          back(box_px.x2, g.pad_x, g.gain_x, g.original.width),
          back(box_px.y2, g.pad_y, g.gain_y, g.original.height)};
}

namespace {

double aspect(Size size) {
  return static_cast<double>(size.height) / size.width;
}

/// The shape that suits pictures with aspect ratios from `lowest` to `highest`.
Size rectangular_shape(double lowest, double highest, RectangularSettings const& settings) {
  double height = 1;
  double width = 1;
  if (highest < 1) {
    height = highest;
  } else if (lowest > 1) {
    width = 1 / lowest;
  }
  auto const side = [&](double factor) {
    double const strides = factor * settings.image_size / settings.stride + settings.pad;
    return static_cast<int>(std::ceil(strides)) * settings.stride;
  };
  return {side(height), side(width)};
}

}  // namespace

RectangularBatches rectangular_batches(std::span<Size const> pictures,
                                       RectangularSettings const& settings) {
  YOLOHPC_CHECK(settings.batch >= 1, "the validation batch is ", settings.batch,
                " (at least 1 is needed)");
  for (Size const size : pictures) check_size(size, "a picture");
  RectangularBatches batches;
  batches.order.resize(pictures.size());
  std::iota(batches.order.begin(), batches.order.end(), 0u);
  std::stable_sort(
      batches.order.begin(), batches.order.end(),
      [&](std::uint32_t a, std::uint32_t b) { return aspect(pictures[a]) < aspect(pictures[b]); });
  auto const batch = static_cast<std::size_t>(settings.batch);
  for (std::size_t first = 0; first < batches.order.size(); first += batch) {
    std::size_t const last = std::min(first + batch, batches.order.size()) - 1;
    batches.shapes.push_back(rectangular_shape(aspect(pictures[batches.order[first]]),
                                               aspect(pictures[batches.order[last]]), settings));
  }
  return batches;
}

}  // namespace yolohpc::data
