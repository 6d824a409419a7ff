#include "yolohpc/eval/matches.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "yolohpc/base/error.hpp"

#include "byte_stream.hpp"
#include "sorted_ids.hpp"

namespace yolohpc::eval {
namespace {

constexpr std::uint16_t every_threshold = (1u << iou_threshold_count) - 1;

/// The objects and detections of one category in one image.
struct Category {
  std::vector<CocoObject const*> objects;        // file order
  std::vector<CocoDetection const*> detections;  // best first
};

/// An object that a detection could take at the lowest threshold.
struct Overlap {
  std::size_t object;
  double iou;
};
using Overlaps = std::vector<Overlap>;

std::vector<Overlaps> overlaps_of(Category const& category) {
  std::vector<Overlaps> overlaps(category.detections.size());
  for (std::size_t d = 0; d < overlaps.size(); ++d) {
    for (std::size_t j = 0; j < category.objects.size(); ++j) {
      double const iou = coco_iou(*category.detections[d], *category.objects[j]);
      if (iou >= iou_thresholds()[0]) overlaps[d].push_back({j, iou});
    }
  }
  return overlaps;
}

/// Matching in one area range.
class RangeMatcher {
 public:
  RangeMatcher(Category const& category, AreaRange range)
      : category_(category),
        range_(range),
        ignored_(category.objects.size()),
        taken_(category.objects.size(), 0) {
    for (std::size_t j = 0; j < ignored_.size(); ++j) {
      auto const& object = *category.objects[j];
      ignored_[j] = object.is_crowd || !range.contains(object.area);
    }
  }

  std::uint32_t countable() const {
    return static_cast<std::uint32_t>(std::count(ignored_.begin(), ignored_.end(), false));
  }

  struct Bits {
    std::uint16_t hit = 0;
    std::uint16_t miss = 0;
  };
  /// Detections have to come in order of score.
  Bits judge(CocoDetection const& detection, Overlaps const& overlaps) {
    bool const in_range = range_.contains(detection.box[2] * detection.box[3]);
    Bits bits;
    if (overlaps.empty()) {
      bits.miss = in_range ? every_threshold : 0;
      return bits;
    }
    for (int t = 0; t < iou_threshold_count; ++t) {
      auto const object = take(overlaps, t);
      // The reference stores the id of the object as the mark of a match, so id 0 reads as none.
      bool const matched = object && category_.objects[*object]->id != 0;
      bool const ignored = (object && ignored_[*object]) || (!matched && !in_range);
      auto const bit = static_cast<std::uint16_t>(1u << t);
      if (matched && !ignored) bits.hit |= bit;
      if (!matched && !ignored) bits.miss |= bit;
    }
    return bits;
  }

 private:
  // A detection looks at ignored objects only when no other is left for it.
  std::optional<std::size_t> take(Overlaps const& overlaps, int t) {
    auto object = best(overlaps, t, false);
    if (!object) object = best(overlaps, t, true);
    if (object) taken_[*object] |= static_cast<std::uint16_t>(1u << t);
    return object;
  }

  // Of equal IoUs the last object wins. (The reference starts from min(t, 1 - 1e-10), which is t.)
  std::optional<std::size_t> best(Overlaps const& overlaps, int t, bool among_ignored) const {
    std::optional<std::size_t> found;
    double best_iou = iou_thresholds()[t];
    for (auto const& [object, iou] : overlaps) {
      if (ignored_[object] != among_ignored) continue;
      if ((taken_[object] >> t & 1) && !category_.objects[object]->is_crowd) continue;
      if (iou < best_iou) continue;
      best_iou = iou;
      found = object;
    }
    return found;
  }

  Category const& category_;
  AreaRange range_;
  std::vector<bool> ignored_;
  std::vector<std::uint16_t> taken_;  // bit t: at threshold t
};

/// The position of an id among the ascending `category_ids`, or none.
std::optional<std::int32_t> position_of(std::int64_t id,
                                        std::vector<std::int64_t> const& category_ids) {
  auto const found = std::lower_bound(category_ids.begin(), category_ids.end(), id);
  if (found == category_ids.end() || *found != id) return {};
  return static_cast<std::int32_t>(found - category_ids.begin());
}

void sort_and_cut(std::vector<CocoDetection const*>& detections, int limit) {
  std::stable_sort(detections.begin(), detections.end(),
                   [](auto const* a, auto const* b) { return a->score > b->score; });
  if (detections.size() > static_cast<std::size_t>(limit)) detections.resize(limit);
}

/// The categories that have objects or detections in the image, by position.
std::map<std::int32_t, Category> categories_of(CocoImage const& image,
                                               std::vector<std::int64_t> const& category_ids,
                                               int limit) {
  std::map<std::int32_t, Category> categories;
  for (auto const& object : image.objects) {
    auto const position = position_of(object.category_id, category_ids);
    if (position) categories[*position].objects.push_back(&object);
  }
  for (auto const& detection : image.detections) {
    auto const position = position_of(detection.category_id, category_ids);
    if (position) categories[*position].detections.push_back(&detection);
  }
  for (auto& [position, category] : categories) sort_and_cut(category.detections, limit);
  return categories;
}

void check_scores(CocoImage const& image) {
  for (auto const& detection : image.detections) {
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, std::isfinite(detection.score), "image ", image.id,
                     " has a detection of category ", detection.category_id, " with score ",
                     detection.score, " (detections are ordered by score; it has to be finite)");
  }
}

/// Fills `verdicts` and returns the number of countable objects in each area range.
std::array<std::uint32_t, area_range_count> match(Category const& category,
                                                  std::span<Matches::Verdict> verdicts) {
  auto const overlaps = overlaps_of(category);
  std::array<std::uint32_t, area_range_count> countable{};
  for (int a = 0; a < area_range_count; ++a) {
    RangeMatcher matcher(category, area_ranges[a]);
    countable[a] = matcher.countable();
    for (std::size_t d = 0; d < verdicts.size(); ++d) {
      auto const [hit, miss] = matcher.judge(*category.detections[d], overlaps[d]);
      verdicts[d].hit[a] = hit;
      verdicts[d].miss[a] = miss;
    }
  }
  return countable;
}

}  // namespace

Matches::Matches(std::span<std::int64_t const> category_ids, CocoSettings const& settings)
    : category_ids_(sorted_ids(category_ids)), limits_(settings.detection_limits) {
  YOLOHPC_CHECK_AS(base::ExitCode::usage,
                   limits_[0] > 0 && limits_[0] <= limits_[1] && limits_[1] <= limits_[2],
                   "the detection limits are ", limits_[0], ", ", limits_[1], ", ", limits_[2],
                   " (they have to be positive and ascending)");
}

void Matches::add_image(CocoImage const& image) {
  check_scores(image);
  image_ids_.push_back(image.id);
  detections_given_ += static_cast<std::int64_t>(image.detections.size());
  for (auto const& [position, category] : categories_of(image, category_ids_, limits_[2])) {
    auto const count = category.detections.size();
    auto const first = verdicts_.size();
    verdicts_.resize(first + count);
    pairs_.push_back({image.id, position, static_cast<std::uint32_t>(count),
                      match(category, std::span(verdicts_).subspan(first))});
    for (auto const* kept : category.detections) scores_.push_back(kept->score);
  }
}

void Matches::merge(Matches const& other) {
  YOLOHPC_CHECK(category_ids_ == other.category_ids_ && limits_ == other.limits_,
                "two parts of one evaluation differ in their ", category_ids_.size(), " and ",
                other.category_ids_.size(),
                " categories or in their detection limits. All ranks must read the same data.");
  auto append = [](auto& to, auto const& from) { to.insert(to.end(), from.begin(), from.end()); };
  detections_given_ += other.detections_given_;
  append(image_ids_, other.image_ids_);
  append(pairs_, other.pairs_);
  append(scores_, other.scores_);
  append(verdicts_, other.verdicts_);
}

std::vector<std::byte> Matches::to_bytes() const {
  ByteWriter writer;
  writer.array<std::int64_t>(category_ids_);
  writer.array<int>(limits_);
  writer.number(detections_given_);
  writer.array<std::int64_t>(image_ids_);
  writer.array<Pair>(pairs_);
  writer.array<double>(scores_);
  writer.array<Verdict>(verdicts_);
  return writer.take();
}

Matches Matches::from_bytes(std::span<std::byte const> bytes) {
  ByteReader reader(bytes);
  auto const category_ids = reader.array<std::int64_t>();
  auto const limits = reader.array<int>();
  YOLOHPC_CHECK(limits.size() == 3, "a rank sent ", limits.size(),
                " detection limits where 3 were expected. All ranks must run the same program.");
  Matches matches(category_ids, {{limits[0], limits[1], limits[2]}});
  matches.detections_given_ = reader.number<std::int64_t>();
  matches.image_ids_ = reader.array<std::int64_t>();
  matches.pairs_ = reader.array<Pair>();
  matches.scores_ = reader.array<double>();
  matches.verdicts_ = reader.array<Verdict>();
  reader.expect_end();
  return matches;
}

}  // namespace yolohpc::eval
