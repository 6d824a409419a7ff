// Detection metrics of the training log: precision, recall, mAP50, mAP50-95 in network pixels.
//
// These are the numbers that other trainers of this family plot; they are close to the COCO numbers
// and not equal to them (boxes in float32 network pixels, no crowds, trapezoidal area under the
// curve). Source of every rule: spec/postprocess.md sections 4 and 5.
//
// Letters: K classes that have labels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace yolohpc::eval {

/// IoU thresholds 0.5, 0.55, ..., 0.95 as float32.
inline constexpr int metric_threshold_count = 10;

struct TrueBox {
  std::array<float, 4> corners_px{};  ///< x1 y1 x2 y2
  std::int32_t class_index = 0;
};

struct FoundBox {
  std::array<float, 4> corners_px{};
  float confidence = 0;
  std::int32_t class_index = 0;
};

/// For each found box, in the given order, bit t: it is a true positive at IoU threshold t. It
/// takes the free box of its class of largest IoU, the first of equal ones, for that threshold
/// alone.
std::vector<std::uint16_t> true_positives(std::span<FoundBox const> found,
                                          std::span<TrueBox const> truth);

/// Without any label: no classes, and all single numbers are -1.
struct DetectionMetrics {
  std::vector<std::int32_t> classes;                           ///< (K) ascending
  std::vector<std::int64_t> labels;                            ///< (K) how many each has
  std::vector<double> precision, recall, f1;                   ///< (K) at the working point
  std::vector<double> true_positives, false_positives;         ///< (K) there, whole numbers
  std::vector<std::array<double, metric_threshold_count>> ap;  ///< (K) at each threshold
  double mean_precision = -1;
  double mean_recall = -1;
  double map50 = -1;
  double map75 = -1;
  double map50_95 = -1;            ///< also the fitness of a checkpoint
  double working_confidence = -1;  ///< confidence of the largest smoothed mean F1
  bool is_defined() const { return !classes.empty(); }
};

/// Found and true boxes of some images, reduced to what the metrics need. Parts may be made and
/// merged in any order: the numbers are the same to the last bit.
class DetectionRecords {
 public:
  /// \param position  place of the image in the data set; decides between equal confidences
  void add_image(std::int64_t position, std::span<FoundBox const> found,
                 std::span<TrueBox const> truth);
  void merge(DetectionRecords const& other);

  /// The part as bytes, and back; both ends must be machines of one kind.
  /// \throws Error  the bytes are not what to_bytes() wrote
  std::vector<std::byte> to_bytes() const;
  static DetectionRecords from_bytes(std::span<std::byte const> bytes);

  /// \throws Error  a position was added twice
  DetectionMetrics metrics() const;

 private:
  struct Image {
    std::int64_t position;
    std::int64_t found;  // how many entries of found_ are of this image
  };
  struct Found {
    float confidence;
    std::int16_t class_index;
    std::uint16_t true_positive;  // bit t
  };
  std::vector<Image> images_;
  std::vector<Found> found_;
  std::vector<std::int64_t> labels_;  // by class index
};

/// Box filter over an odd number of samples, round(size * fraction * 2) / 2 + 1, with the ends
/// repeated.
std::vector<double> smoothed(std::span<double const> values, double fraction);

}  // namespace yolohpc::eval
