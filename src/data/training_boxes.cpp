#include <algorithm>
#include <cmath>
#include <set>

#include "yolohpc/data/shard_set.hpp"

namespace yolohpc::data {
namespace {

bool is_finite(std::array<double, 4> const& values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

/// Class and box as given: what makes two annotations the same for training.
using Key = std::pair<std::int32_t, std::array<double, 4>>;

}  // namespace

TrainingBoxes training_boxes(std::span<Annotation const> annotations, int width_px, int height_px) {
  TrainingBoxes result;
  std::set<Key> seen;
  for (Annotation const& annotation : annotations) {
    auto const& [left, top, width, height] = annotation.xywh_px;
    if (annotation.is_crowd) {
      ++result.crowd;
      continue;
    }
    if (!is_finite(annotation.xywh_px) || width <= 0 || height <= 0) {
      ++result.empty;
      continue;
    }
    std::array<double, 4> const whole{left, top, left + width, top + height};
    std::array<double, 4> const inside{std::max(left, 0.0), std::max(top, 0.0),
                                       std::min(whole[2], static_cast<double>(width_px)),
                                       std::min(whole[3], static_cast<double>(height_px))};
    if (inside[2] <= inside[0] || inside[3] <= inside[1]) {
      ++result.outside;
      continue;
    }
    if (!seen.insert({annotation.class_index, annotation.xywh_px}).second) {
      ++result.duplicate;
      continue;
    }
    result.clipped += inside != whole ? 1 : 0;
    result.boxes.push_back({inside, annotation.class_index});
  }
  return result;
}

}  // namespace yolohpc::data
