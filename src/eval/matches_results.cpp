// The second half of Matches: precision and recall over the merged parts.
#include <algorithm>
#include <limits>
#include <numeric>

#include <ATen/Parallel.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/eval/matches.hpp"

#include "sorted_ids.hpp"

namespace yolohpc::eval {
namespace {

using Pair = Matches::Pair;
using Verdict = Matches::Verdict;

// numpy.spacing(1), which the reference adds to denominators.
constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr int all_areas = 0;

/// What one category has in one area range.
struct RangeCurves {
  std::uint64_t objects = 0;  ///< countable ones; nothing else is valid without any
  std::array<double, iou_threshold_count> precision_sum{};  ///< over the recall points
  std::array<double, iou_threshold_count> recall{};         ///< at the last detection limit
};
struct CategoryCurves {
  std::array<RangeCurves, area_range_count> range;
  /// Over all areas, at the first two detection limits.
  std::array<std::array<double, iou_threshold_count>, 2> limited_recall{};
};

/// A pair and where its detections begin.
struct Located {
  Pair const* pair;
  std::size_t first;
};

/// Detections of one category over all images, best first; equal scores by image id, then as kept.
std::vector<Verdict> pooled(std::span<Located const> pairs, std::span<double const> scores,
                            std::span<Verdict const> verdicts) {
  std::vector<std::size_t> order;
  for (auto const& [pair, first] : pairs) {
    for (std::size_t d = 0; d < pair->detections; ++d) order.push_back(first + d);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<Verdict> result;
  result.reserve(order.size());
  for (auto const index : order) result.push_back(verdicts[index]);
  return result;
}

/// Sums the precision envelope over the recall points. `precision` holds the value at each hit:
/// between two hits precision only falls and recall stands still, so the other points never show.
double sum_over_recall_points(std::vector<double>& precision, double objects) {
  for (std::size_t i = precision.size(); i > 1; --i) {
    precision[i - 2] = std::max(precision[i - 2], precision[i - 1]);
  }
  double sum = 0;
  std::size_t hit = 0;
  for (double const recall : recall_points()) {
    while (hit < precision.size() && static_cast<double>(hit + 1) / objects < recall) ++hit;
    if (hit == precision.size()) break;
    sum += precision[hit];
  }
  return sum;
}

RangeCurves range_curves(std::span<Located const> pairs, std::vector<Verdict> const& verdicts,
                         int range) {
  RangeCurves curves;
  for (auto const& located : pairs) curves.objects += located.pair->objects[range];
  if (curves.objects == 0) return curves;
  auto const objects = static_cast<double>(curves.objects);
  std::vector<double> precision;
  for (int t = 0; t < iou_threshold_count; ++t) {
    precision.clear();
    std::uint64_t misses = 0;
    for (auto const& verdict : verdicts) {
      misses += verdict.miss[range] >> t & 1;
      if ((verdict.hit[range] >> t & 1) == 0) continue;
      auto const hits = static_cast<double>(precision.size() + 1);
      precision.push_back(hits / (static_cast<double>(misses) + hits + epsilon));
    }
    curves.recall[t] = static_cast<double>(precision.size()) / objects;
    curves.precision_sum[t] = sum_over_recall_points(precision, objects);
  }
  return curves;
}

std::array<double, iou_threshold_count> limited_recall(std::span<Located const> pairs,
                                                       std::span<Verdict const> verdicts, int limit,
                                                       std::uint64_t objects) {
  std::array<std::uint64_t, iou_threshold_count> hits{};
  for (auto const& [pair, first] : pairs) {
    auto const count = std::min<std::size_t>(pair->detections, limit);
    for (auto const& verdict : verdicts.subspan(first, count)) {
      for (int t = 0; t < iou_threshold_count; ++t) hits[t] += verdict.hit[all_areas] >> t & 1;
    }
  }
  std::array<double, iou_threshold_count> recall{};
  for (int t = 0; objects > 0 && t < iou_threshold_count; ++t) {
    recall[t] = static_cast<double>(hits[t]) / static_cast<double>(objects);
  }
  return recall;
}

using Thresholds = std::array<double, iou_threshold_count>;

double sum(Thresholds const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The mean of `value` over the categories that have objects in the range, or -1.
template <typename Value>
double mean(std::span<CategoryCurves const> categories, int range, double terms, Value&& value) {
  double total = 0;
  std::int64_t counted = 0;
  for (auto const& category : categories) {
    if (category.range[range].objects == 0) continue;
    total += value(category);
    ++counted;
  }
  return counted == 0 ? undefined_number : total / (terms * static_cast<double>(counted));
}

double mean_precision(std::span<CategoryCurves const> categories, int range) {
  return mean(categories, range, iou_threshold_count * recall_point_count,
              [&](auto const& curves) { return sum(curves.range[range].precision_sum); });
}

double mean_precision_at(std::span<CategoryCurves const> categories, int threshold) {
  return mean(categories, all_areas, recall_point_count,
              [&](auto const& curves) { return curves.range[all_areas].precision_sum[threshold]; });
}

double mean_recall(std::span<CategoryCurves const> categories, int range) {
  return mean(categories, range, iou_threshold_count,
              [&](auto const& curves) { return sum(curves.range[range].recall); });
}

double mean_limited_recall(std::span<CategoryCurves const> categories, int limit) {
  return mean(categories, all_areas, iou_threshold_count,
              [&](auto const& curves) { return sum(curves.limited_recall[limit]); });
}

// Source: spec/evaluation.md section 5. Thresholds 0 and 5 are 0.5 and 0.75.
CocoNumbers twelve_numbers(std::span<CategoryCurves const> categories) {
  return {mean_precision(categories, 0),      mean_precision_at(categories, 0),
          mean_precision_at(categories, 5),   mean_precision(categories, 1),
          mean_precision(categories, 2),      mean_precision(categories, 3),
          mean_limited_recall(categories, 0), mean_limited_recall(categories, 1),
          mean_recall(categories, 0),         mean_recall(categories, 1),
          mean_recall(categories, 2),         mean_recall(categories, 3)};
}

CategoryResult category_result(std::int64_t id, CategoryCurves const& curves) {
  CategoryResult result{id, twelve_numbers({&curves, 1}), {}, {}};
  auto const& range = curves.range[all_areas];
  for (int t = 0; t < iou_threshold_count; ++t) {
    bool const is_defined = range.objects > 0;
    result.ap_by_iou[t] =
        is_defined ? range.precision_sum[t] / recall_point_count : undefined_number;
    result.recall_by_iou[t] = is_defined ? range.recall[t] : undefined_number;
  }
  return result;
}

// Repeating an image that fills up a batch changes the numbers silently, so nothing but one visit
// to each image is accepted.
void check_cover(std::vector<std::int64_t> seen, std::vector<std::int64_t> const& expected) {
  std::sort(seen.begin(), seen.end());
  auto const twice = std::adjacent_find(seen.begin(), seen.end());
  if (twice != seen.end()) {
    base::fail(base::ExitCode::failure, "image ", *twice,
               " was evaluated more than once. Every image has to be evaluated by one rank.");
  }
  auto const [here, there] =
      std::mismatch(seen.begin(), seen.end(), expected.begin(), expected.end());
  if (here == seen.end() && there == expected.end()) return;
  bool const missing = there != expected.end() && (here == seen.end() || *there < *here);
  YOLOHPC_CHECK(!missing, "image ", *there, " was not evaluated (", seen.size(), " of ",
                expected.size(), " were). Every image has to be evaluated by one rank.");
  base::fail(base::ExitCode::failure, "image ", *here,
             " was evaluated but is not in the data set.");
}

/// The pairs of each category, ascending by image id.
std::vector<std::vector<Located>> by_category(std::vector<Pair> const& pairs,
                                              std::size_t category_count) {
  std::vector<std::vector<Located>> categories(category_count);
  std::size_t first = 0;
  for (auto const& pair : pairs) {
    categories.at(pair.category).push_back({&pair, first});
    first += pair.detections;
  }
  for (auto& category : categories) {
    std::sort(category.begin(), category.end(), [](Located const& a, Located const& b) {
      return a.pair->image_id < b.pair->image_id;
    });
  }
  return categories;
}

}  // namespace

CocoResults Matches::results(std::span<std::int64_t const> image_ids) const {
  auto const expected = sorted_ids(image_ids);
  check_cover(image_ids_, expected);
  auto const pairs = by_category(pairs_, category_ids_.size());
  std::vector<CategoryCurves> curves(pairs.size());
  auto draw = [&](std::int64_t k) {
    auto const verdicts = pooled(pairs[k], scores_, verdicts_);
    for (int a = 0; a < area_range_count; ++a) {
      curves[k].range[a] = range_curves(pairs[k], verdicts, a);
    }
    auto const objects = curves[k].range[all_areas].objects;
    for (int limit = 0; limit < 2; ++limit) {
      curves[k].limited_recall[limit] =
          limited_recall(pairs[k], verdicts_, limits_[limit], objects);
    }
  };
  at::parallel_for(0, static_cast<std::int64_t>(curves.size()), 1,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (auto k = begin; k < end; ++k) draw(k);
                   });
  CocoResults results;
  results.numbers = twelve_numbers(curves);
  results.images = static_cast<std::int64_t>(expected.size());
  results.detections = detections_given_;
  results.detection_limits = limits_;
  for (std::size_t k = 0; k < curves.size(); ++k) {
    results.per_category.push_back(category_result(category_ids_[k], curves[k]));
  }
  return results;
}

}  // namespace yolohpc::eval
