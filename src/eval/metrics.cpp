#include "yolohpc/eval/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "yolohpc/base/error.hpp"

#include "byte_stream.hpp"
#include "curves.hpp"

namespace yolohpc::eval {
namespace {

constexpr std::array<float, metric_threshold_count> thresholds = {
    0.5f, 0.55f, 0.6f, 0.65f, 0.7f, 0.75f, 0.8f, 0.85f, 0.9f, 0.95f};
constexpr int threshold_75 = 5;

// float32 throughout, like the tensors of the reference.
float iou(std::array<float, 4> const& a, std::array<float, 4> const& b) {
  constexpr float epsilon = 1e-7f;
  float const width = std::max(std::min(a[2], b[2]) - std::max(a[0], b[0]), 0.0f);
  float const height = std::max(std::min(a[3], b[3]) - std::max(a[1], b[1]), 0.0f);
  float const inter = width * height;
  float const area_a = (a[2] - a[0]) * (a[3] - a[1]);
  float const area_b = (b[2] - b[0]) * (b[3] - b[1]);
  return inter / (area_a + area_b - inter + epsilon);
}

struct Overlap {
  std::size_t box;
  float iou;
};

/// Boxes of the same class that pass at least the lowest threshold.
std::vector<Overlap> overlaps_of(FoundBox const& found, std::span<TrueBox const> truth) {
  std::vector<Overlap> overlaps;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (truth[i].class_index != found.class_index) continue;
    float const value = iou(truth[i].corners_px, found.corners_px);
    if (value >= thresholds[0]) overlaps.push_back({i, value});
  }
  return overlaps;
}

/// One class: labels, and its detections by falling confidence.
struct ClassDetections {
  std::int64_t labels = 0;
  std::vector<double> confidence;
  std::vector<std::uint16_t> true_positive;
};

/// Precision and recall after each detection.
struct Curve {
  std::vector<double> precision;
  std::vector<double> recall;
};

constexpr double tiny = 1e-16;

Curve curve_at(ClassDetections const& detections, int threshold) {
  Curve curve;
  std::int64_t hits = 0;
  for (std::size_t i = 0; i < detections.confidence.size(); ++i) {
    hits += detections.true_positive[i] >> threshold & 1;
    curve.precision.push_back(static_cast<double>(hits) / static_cast<double>(i + 1));
    curve.recall.push_back(static_cast<double>(hits) /
                           (static_cast<double>(detections.labels) + tiny));
  }
  return curve;
}

double average_precision(Curve const& curve) {
  constexpr int points = 101;
  if (curve.recall.empty()) return 0;
  std::vector<double> recall = {0};
  std::vector<double> precision = {1};
  recall.insert(recall.end(), curve.recall.begin(), curve.recall.end());
  precision.insert(precision.end(), curve.precision.begin(), curve.precision.end());
  recall.insert(recall.end(), {curve.recall.back(), 1.0});
  precision.insert(precision.end(), {0.0, 0.0});
  for (std::size_t i = precision.size() - 1; i > 0; --i) {
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  }
  double area = 0;
  double last = 0;
  for (int i = 0; i < points; ++i) {
    double const value = interpolate(grid_point(i, points), recall, precision);
    if (i > 0) area += (grid_point(i, points) - grid_point(i - 1, points)) * (value + last) / 2;
    last = value;
  }
  return area;
}

constexpr int confidence_points = 1000;
using ConfidenceCurve = std::vector<double>;  // on the confidence grid

/// Values given at falling confidences, on the grid; `above` beyond the highest confidence.
ConfidenceCurve over_confidence(std::vector<double> const& confidence,
                                std::vector<double> const& values, double above) {
  ConfidenceCurve curve(confidence_points, 0);
  if (confidence.empty()) return curve;
  std::vector<double> negated;
  for (auto const c : confidence) negated.push_back(-c);
  for (int i = 0; i < confidence_points; ++i) {
    double const x = -grid_point(i, confidence_points);
    curve[i] = x < negated.front() ? above : interpolate(x, negated, values);
  }
  return curve;
}

struct ClassCurves {
  ConfidenceCurve precision;
  ConfidenceCurve recall;
  ConfidenceCurve f1;
};

ClassCurves curves_of(ClassDetections const& detections) {
  auto const curve = curve_at(detections, 0);
  ClassCurves result{over_confidence(detections.confidence, curve.precision, 1),
                     over_confidence(detections.confidence, curve.recall, 0),
                     {}};
  for (int i = 0; i < confidence_points; ++i) {
    double const p = result.precision[i];
    double const r = result.recall[i];
    result.f1.push_back(2 * p * r / (p + r + tiny));
  }
  return result;
}

double mean(std::vector<double> const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

int working_point(std::vector<ClassCurves> const& curves) {
  constexpr double smoothing = 0.1;
  std::vector<double> f1(confidence_points, 0);
  for (auto const& curve : curves) {
    for (int i = 0; i < confidence_points; ++i) f1[i] += curve.f1[i];
  }
  for (auto& value : f1) value /= static_cast<double>(curves.size());
  auto const smooth = smoothed(f1, smoothing);
  return static_cast<int>(std::max_element(smooth.begin(), smooth.end()) - smooth.begin());
}

void add_working_point(DetectionMetrics& metrics, std::vector<ClassCurves> const& curves) {
  int const point = working_point(curves);
  metrics.working_confidence = grid_point(point, confidence_points);
  for (std::size_t k = 0; k < curves.size(); ++k) {
    double const p = curves[k].precision[point];
    double const r = curves[k].recall[point];
    double const hits = std::nearbyint(r * static_cast<double>(metrics.labels[k]));
    metrics.precision.push_back(p);
    metrics.recall.push_back(r);
    metrics.f1.push_back(curves[k].f1[point]);
    metrics.true_positives.push_back(hits);
    metrics.false_positives.push_back(std::nearbyint(hits / (p + tiny) - hits));
  }
  metrics.mean_precision = mean(metrics.precision);
  metrics.mean_recall = mean(metrics.recall);
}

void add_average_precisions(DetectionMetrics& metrics) {
  double sum = 0;
  double sum_50 = 0;
  double sum_75 = 0;
  for (auto const& ap : metrics.ap) {
    sum += std::accumulate(ap.begin(), ap.end(), 0.0);
    sum_50 += ap[0];
    sum_75 += ap[threshold_75];
  }
  auto const classes = static_cast<double>(metrics.ap.size());
  metrics.map50 = sum_50 / classes;
  metrics.map75 = sum_75 / classes;
  metrics.map50_95 = sum / (classes * metric_threshold_count);
}

}  // namespace

std::vector<std::uint16_t> true_positives(std::span<FoundBox const> found,
                                          std::span<TrueBox const> truth) {
  std::vector<std::uint16_t> result(found.size(), 0);
  std::vector<std::uint16_t> taken(truth.size(), 0);
  for (std::size_t d = 0; d < found.size(); ++d) {
    auto const overlaps = overlaps_of(found[d], truth);
    if (overlaps.empty()) continue;
    for (int t = 0; t < metric_threshold_count; ++t) {
      Overlap best{0, 0};
      for (auto const& overlap : overlaps) {
        if ((taken[overlap.box] >> t & 1) == 0 && overlap.iou > best.iou) best = overlap;
      }
      if (best.iou < thresholds[t]) continue;
      taken[best.box] |= static_cast<std::uint16_t>(1u << t);
      result[d] |= static_cast<std::uint16_t>(1u << t);
    }
  }
  return result;
}

std::vector<double> smoothed(std::span<double const> values, double fraction) {
  auto const size = static_cast<std::int64_t>(values.size());
  auto const width =
      static_cast<std::int64_t>(std::nearbyint(static_cast<double>(size) * fraction * 2)) / 2 + 1;
  auto const half = width / 2;
  double const weight = 1.0 / static_cast<double>(width);
  std::vector<double> result(values.size(), 0);
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = i - half; j < i - half + width; ++j) {
      result[i] += values[std::clamp<std::int64_t>(j, 0, size - 1)] * weight;
    }
  }
  return result;
}

void DetectionRecords::add_image(std::int64_t position, std::span<FoundBox const> found,
                                 std::span<TrueBox const> truth) {
  images_.push_back({position, static_cast<std::int64_t>(found.size())});
  auto const hits = true_positives(found, truth);
  for (std::size_t i = 0; i < found.size(); ++i) {
    found_.push_back(
        {found[i].confidence, static_cast<std::int16_t>(found[i].class_index), hits[i]});
  }
  for (auto const& box : truth) {
    auto const index = static_cast<std::size_t>(box.class_index);
    if (index >= labels_.size()) labels_.resize(index + 1, 0);
    ++labels_[index];
  }
}

void DetectionRecords::merge(DetectionRecords const& other) {
  images_.insert(images_.end(), other.images_.begin(), other.images_.end());
  found_.insert(found_.end(), other.found_.begin(), other.found_.end());
  labels_.resize(std::max(labels_.size(), other.labels_.size()), 0);
  for (std::size_t c = 0; c < other.labels_.size(); ++c) labels_[c] += other.labels_[c];
}

std::vector<std::byte> DetectionRecords::to_bytes() const {
  ByteWriter writer;
  writer.array<Image>(images_);
  writer.array<Found>(found_);
  writer.array<std::int64_t>(labels_);
  return writer.take();
}

DetectionRecords DetectionRecords::from_bytes(std::span<std::byte const> bytes) {
  ByteReader reader(bytes);
  DetectionRecords records;
  records.images_ = reader.array<Image>();
  records.found_ = reader.array<Found>();
  records.labels_ = reader.array<std::int64_t>();
  reader.expect_end();
  return records;
}

DetectionMetrics DetectionRecords::metrics() const {
  struct Place {
    std::int64_t position;
    std::size_t index;
  };
  std::vector<Place> order;
  for (auto const& image : images_) {
    for (std::int64_t i = 0; i < image.found; ++i) order.push_back({image.position, order.size()});
  }
  std::sort(order.begin(), order.end(), [&](Place const& a, Place const& b) {
    auto const [a_confidence, b_confidence] =
        std::pair(found_[a.index].confidence, found_[b.index].confidence);
    if (a_confidence != b_confidence) return a_confidence > b_confidence;
    return std::pair(a.position, a.index) < std::pair(b.position, b.index);
  });
  std::vector<ClassDetections> classes(labels_.size());
  for (auto const& place : order) {
    auto const& found = found_[place.index];
    if (static_cast<std::size_t>(found.class_index) >= classes.size()) continue;
    auto& detections = classes[found.class_index];
    detections.confidence.push_back(found.confidence);
    detections.true_positive.push_back(found.true_positive);
  }
  DetectionMetrics metrics;
  std::vector<ClassCurves> curves;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (labels_[c] == 0) continue;
    classes[c].labels = labels_[c];
    metrics.classes.push_back(static_cast<std::int32_t>(c));
    metrics.labels.push_back(labels_[c]);
    auto& ap = metrics.ap.emplace_back();
    for (int t = 0; t < metric_threshold_count; ++t) {
      ap[t] = average_precision(curve_at(classes[c], t));
    }
    curves.push_back(curves_of(classes[c]));
  }
  if (curves.empty()) return metrics;
  add_working_point(metrics, curves);
  add_average_precisions(metrics);
  return metrics;
}

}  // namespace yolohpc::eval
