// The COCO box evaluation: objects and detections in, the twelve numbers out.
//
// Same numbers as pycocotools 2.0.11 (COCOeval, iouType "bbox") to 1e-12, ties, crowds and empty
// cases included. All arithmetic is IEEE double. Procedure and constants: spec/evaluation.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace yolohpc::eval {

/// An annotated object.
struct CocoObject {
  std::int64_t id = 0;  ///< with id 0 a hit counts as a miss, as in the reference
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  std::array<double, 4> box{};  ///< x y w h, pixels, as given: neither clipped nor checked
  double area = 0;              ///< decides the area range; not the area of the box
  bool is_crowd = false;        ///< absorbs any number of detections and is never missed
};

/// A detection in original pixels.
struct CocoDetection {
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  std::array<double, 4> box{};  ///< x y w h, pixels
  double score = 0;             ///< finite; only orders detections
};

struct CocoCategory {
  std::int64_t id = 0;
  std::string name;
};

/// What is evaluated: these images and categories, whether objects name them or not.
struct CocoDataset {
  std::vector<std::int64_t> image_ids;   ///< any order, repetitions count once
  std::vector<CocoCategory> categories;  ///< any order, repetitions count once
  std::vector<CocoObject> objects;       ///< file order
};

struct CocoSettings {
  /// Detections of one image and category that count, best first; ascending. The last one holds for
  /// AP and for the recalls by area as well, so that it changes the headline number.
  std::array<int, 3> detection_limits{1, 10, 100};
};

inline constexpr int iou_threshold_count = 10;
inline constexpr int area_range_count = 4;
inline constexpr int coco_number_count = 12;

/// The twelve numbers in their usual order; the names are the keys of JSON results.
enum CocoNumber { AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl };
inline constexpr std::array<std::string_view, coco_number_count> coco_number_names{
    "AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"};

/// Indexed by CocoNumber; each in 0..1, or -1 where nothing can be counted.
using CocoNumbers = std::array<double, coco_number_count>;

/// What a number is when there are no objects to count.
inline constexpr double undefined_number = -1;

struct CategoryResult {
  std::int64_t id = 0;
  CocoNumbers numbers{};
  /// At each IoU threshold 0.5, 0.55, ..., 0.95, all areas, last detection limit; or -1.
  std::array<double, iou_threshold_count> ap_by_iou{};
  std::array<double, iou_threshold_count> recall_by_iou{};
};

struct CocoResults {
  CocoNumbers numbers{};
  std::vector<CategoryResult> per_category;  ///< ascending id
  std::int64_t images = 0;
  std::int64_t detections = 0;  ///< all that were given, counted or not
  std::array<int, 3> detection_limits{};

  /// False when there are no objects: AP is then -1, which is no score and never the best one.
  bool is_defined() const { return numbers[AP] > undefined_number; }
};

/// The IoU thresholds and recall points as the reference forms them; some differ in the last bit
/// from the decimal number.
std::array<double, iou_threshold_count> const& iou_thresholds();
inline constexpr int recall_point_count = 101;
std::array<double, recall_point_count> const& recall_points();

/// Both ends belong to the range. All, small, medium, large; square pixels.
struct AreaRange {
  double low;
  double high;
  bool contains(double area) const { return !(area < low || area > high); }
};
inline constexpr std::array<AreaRange, area_range_count> area_ranges{
    {{0, 1e10}, {0, 1024}, {1024, 9216}, {9216, 1e10}}};

/// Intersection over union; over the detection's own area for a crowd. 0 unless the boxes overlap.
double coco_iou(CocoDetection const& detection, CocoObject const& object);

/// Evaluates a whole problem in one process, over the threads of ATen.
///
/// Objects and detections of unlisted categories, and objects of unlisted images, are left out.
/// \param detections  in file order, which decides between equal scores
/// \throws Error (bad data)  a detection of an unlisted image, or a score that is not finite; says
///                           which detection, counted from 0
/// \throws Error (usage)     limits that are not positive and ascending
CocoResults evaluate(CocoDataset const& dataset, std::span<CocoDetection const> detections,
                     CocoSettings const& settings = {});

}  // namespace yolohpc::eval
