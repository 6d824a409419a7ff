#include "yolohpc/boxes/nms.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::boxes {
namespace {

constexpr std::int64_t box_rows = 4;
constexpr std::int64_t row_length = 6;

/// One image's predictions, row-major (4 + C, A).
struct ImageView {
  float const* values;
  std::int64_t classes;
  std::int64_t anchors;

  std::span<float const> row(std::int64_t index) const {
    return {values + index * anchors, static_cast<std::size_t>(anchors)};
  }
  std::span<float const> scores(std::int64_t class_index) const {
    return row(box_rows + class_index);
  }
};

struct Candidate {
  std::int32_t anchor;
  std::int32_t class_index;
  float score;
};

// Both passes run class by class, because that is how the scores lie in memory; the second writes
// each anchor's classes to its own place, so that candidates come out anchor by anchor.
std::vector<Candidate> every_label(ImageView const& image, float confidence) {
  std::vector<std::int32_t> place(image.anchors + 1, 0);
  std::int32_t* const count = place.data() + 1;
  for (std::int64_t c = 0; c < image.classes; ++c) {
    float const* const scores = image.scores(c).data();
    for (std::int64_t a = 0; a < image.anchors; ++a) count[a] += scores[a] > confidence;
  }
  for (std::int64_t a = 0; a < image.anchors; ++a) place[a + 1] += place[a];
  std::vector<Candidate> candidates(place[image.anchors]);
  for (std::int64_t c = 0; c < image.classes; ++c) {
    auto const scores = image.scores(c);
    for (std::int64_t a = 0; a < image.anchors; ++a) {
      if (scores[a] > confidence) {
        candidates[place[a]++] = {static_cast<std::int32_t>(a), static_cast<std::int32_t>(c),
                                  scores[a]};
      }
    }
  }
  return candidates;
}

std::vector<Candidate> best_label(ImageView const& image, float confidence) {
  std::vector<float> best(image.scores(0).begin(), image.scores(0).end());
  std::vector<std::int32_t> label(image.anchors, 0);
  for (std::int64_t c = 1; c < image.classes; ++c) {
    float const* const scores = image.scores(c).data();
    for (std::int64_t a = 0; a < image.anchors; ++a) {
      bool const better = scores[a] > best[a];
      label[a] = better ? static_cast<std::int32_t>(c) : label[a];
      best[a] = better ? scores[a] : best[a];
    }
  }
  std::vector<Candidate> candidates;
  for (std::int64_t a = 0; a < image.anchors; ++a) {
    if (best[a] > confidence) {
      candidates.push_back({static_cast<std::int32_t>(a), label[a], best[a]});
    }
  }
  return candidates;
}

// A number that sorts like the score, most confident first, and then like the position: one integer
// comparison, and no two keys are equal, so that any sort is a stable one.
std::uint64_t sort_key(float score, std::size_t position) {
  constexpr std::uint32_t sign = 0x80000000u;
  // Adding zero makes -0 and +0 the same bits.
  std::uint32_t const bits = std::bit_cast<std::uint32_t>(score + 0.0f);
  std::uint32_t const ascending = bits & sign ? ~bits : bits | sign;
  return static_cast<std::uint64_t>(~ascending) << 32 | static_cast<std::uint32_t>(position);
}

std::vector<std::uint64_t> most_confident_first(std::vector<Candidate> const& candidates,
                                                std::int64_t limit) {
  std::vector<std::uint64_t> keys(candidates.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = sort_key(candidates[i].score, i);
  if (keys.size() > static_cast<std::size_t>(limit)) {
    std::nth_element(keys.begin(), keys.begin() + limit, keys.end());
    keys.resize(limit);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

struct Box {
  float x1, y1, x2, y2;
};

Box corners(ImageView const& image, std::int32_t anchor) {
  float const half_width = image.row(2)[anchor] / 2;
  float const half_height = image.row(3)[anchor] / 2;
  float const x = image.row(0)[anchor];
  float const y = image.row(1)[anchor];
  return {x - half_width, y - half_height, x + half_width, y + half_height};
}

/// The kept boxes, one array for each coordinate so that the comparison loop vectorises.
class KeptBoxes {
 public:
  explicit KeptBoxes(std::int64_t capacity) : values_(5 * capacity), capacity_(capacity) {}

  std::int64_t size() const { return size_; }
  void add(Box const& box) {
    float const fields[] = {box.x1, box.y1, box.x2, box.y2, area(box)};
    for (int field = 0; field < 5; ++field) values_[field * capacity_ + size_] = fields[field];
    ++size_;
  }
  bool any_overlaps(Box const& box, float threshold) const {
    // Blocks: a hit among the first kept boxes, the usual one, ends the search.
    for (std::int64_t first = 0; first < size_; first += block) {
      std::int64_t const count = std::min(block, size_ - first);
      if (count_overlaps(values_.data() + first, capacity_, count, box, threshold) > 0) return true;
    }
    return false;
  }

 private:
  static constexpr std::int64_t block = 32;

  static float area(Box const& box) { return (box.x2 - box.x1) * (box.y2 - box.y1); }

  // Plain selections instead of std::min and std::max: these two map to one instruction each.
  __attribute__((target_clones("default", "avx2", "avx512f"))) static int count_overlaps(
      float const* values, std::int64_t stride, std::int64_t count, Box const& box,
      float threshold) {
    float const* const x1 = values;
    float const* const y1 = values + stride;
    float const* const x2 = values + 2 * stride;
    float const* const y2 = values + 3 * stride;
    float const* const areas = values + 4 * stride;
    float const own_area = (box.x2 - box.x1) * (box.y2 - box.y1);
    int hits = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      float const left = box.x1 > x1[i] ? box.x1 : x1[i];
      float const top = box.y1 > y1[i] ? box.y1 : y1[i];
      float const right = box.x2 < x2[i] ? box.x2 : x2[i];
      float const bottom = box.y2 < y2[i] ? box.y2 : y2[i];
      float const width = right - left > 0 ? right - left : 0;
      float const height = bottom - top > 0 ? bottom - top : 0;
      float const inter = width * height;
      hits += inter / (areas[i] + own_area - inter) > threshold;
    }
    return hits;
  }

  std::vector<float> values_;
  std::int64_t capacity_;
  std::int64_t size_ = 0;
};

struct Survivor {
  Box box;
  Candidate candidate;
};

std::vector<Survivor> suppress(ImageView const& image, NmsSettings const& settings) {
  auto const candidates = settings.multi_label && image.classes > 1
                              ? every_label(image, settings.confidence)
                              : best_label(image, settings.confidence);
  KeptBoxes kept(std::min<std::int64_t>(settings.max_detections, candidates.size()));
  std::vector<Survivor> survivors;
  for (auto const key : most_confident_first(candidates, settings.max_candidates)) {
    if (kept.size() == settings.max_detections) break;
    auto const& candidate = candidates[static_cast<std::uint32_t>(key)];
    Box const box = corners(image, candidate.anchor);
    // The sum is rounded to float32 on purpose: it decides which boxes of high classes overlap.
    float const shift = settings.agnostic
                            ? 0
                            : static_cast<float>(candidate.class_index) * settings.class_offset_px;
    Box const shifted{box.x1 + shift, box.y1 + shift, box.x2 + shift, box.y2 + shift};
    if (kept.any_overlaps(shifted, settings.iou)) continue;
    kept.add(shifted);
    survivors.push_back({box, candidate});
  }
  return survivors;
}

Detections to_tensors(std::vector<Survivor> const& survivors) {
  auto const count = static_cast<std::int64_t>(survivors.size());
  Detections result{at::empty({count, row_length}, at::kFloat), at::empty({count}, at::kLong)};
  float* row = result.rows.data_ptr<float>();
  auto* anchor = result.anchor.data_ptr<std::int64_t>();
  for (auto const& [box, candidate] : survivors) {
    row = std::copy_n(std::to_array({box.x1, box.y1, box.x2, box.y2, candidate.score,
                                     static_cast<float>(candidate.class_index)})
                          .begin(),
                      row_length, row);
    *anchor++ = candidate.anchor;
  }
  return result;
}

void check(at::Tensor const& predictions, NmsSettings const& settings) {
  using base::ExitCode;
  YOLOHPC_CHECK_AS(ExitCode::usage, predictions.dim() == 3 && predictions.size(1) > box_rows,
                   "predictions have shape ", predictions.sizes(),
                   " (suppression needs (images, 4 + classes, anchors))");
  YOLOHPC_CHECK_AS(ExitCode::usage, predictions.is_floating_point(), "predictions have type ",
                   predictions.scalar_type(), " (suppression needs a floating point type)");
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.max_detections > 0 && settings.max_candidates > 0,
                   "the limits of detections and candidates are ", settings.max_detections, " and ",
                   settings.max_candidates, " (both must be at least 1)");
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.iou >= 0 && settings.iou <= 1, "the IoU threshold is ",
                   settings.iou, " (it must lie between 0 and 1)");
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.confidence >= 0 && settings.confidence <= 1,
                   "the confidence threshold is ", settings.confidence,
                   " (it must lie between 0 and 1)");
}

}  // namespace

std::vector<Detections> non_maximum_suppression(at::Tensor const& predictions,
                                                NmsSettings const& settings) {
  check(predictions, settings);
  auto const host = predictions.detach().to(at::kCPU, at::kFloat).contiguous();
  auto const images = host.size(0);
  auto const classes = host.size(1) - box_rows;
  auto const anchors = host.size(2);
  float const* const values = host.const_data_ptr<float>();
  std::vector<std::vector<Survivor>> survivors(images);
  at::parallel_for(0, images, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto b = begin; b < end; ++b) {
      survivors[b] =
          suppress({values + b * (box_rows + classes) * anchors, classes, anchors}, settings);
    }
  });
  std::vector<Detections> result;
  result.reserve(images);
  for (auto const& of_image : survivors) result.push_back(to_tensors(of_image));
  return result;
}

}  // namespace yolohpc::boxes
