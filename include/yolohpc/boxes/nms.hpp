// Non-maximum suppression: from decoded predictions to the boxes that are reported.
//
// Letters: B images, A anchor points, C classes, D detections of one image.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace yolohpc::boxes {

/// Defaults: those of validation. Prediction uses confidence 0.25 and multi_label false.
/// Source: spec/postprocess.md section 2.
struct NmsSettings {
  float confidence = 0.001f;            ///< a candidate's probability must be above this
  float iou = 0.7f;                     ///< a box goes when its IoU with a kept one is above this
  std::int64_t max_detections = 300;    ///< per image, over all classes
  std::int64_t max_candidates = 30000;  ///< per image, the most confident ones
  float class_offset_px = 7680;         ///< shift between classes that keeps them from competing
  bool multi_label = true;              ///< one candidate per anchor and class, else the best class
  bool agnostic = false;                ///< classes compete with each other
};

/// What is left of one image.
struct Detections {
  at::Tensor rows;    ///< (D, 6) float32: x1 y1 x2 y2 in input pixels, confidence, class index
  at::Tensor anchor;  ///< (D) int64: the column of `predictions` a row comes from
};

/// Greedy suppression of each image by itself.
///
/// Candidates are taken anchor by anchor, in each by ascending class, and visited by falling
/// confidence, equal ones in that order. IoU = inter / (area_a + area_b - inter) in float32, on
/// boxes shifted by class * class_offset_px. A class is dropped from an anchor, and a box next to a
/// kept one, by strict comparison; an IoU equal to the threshold stays. When there are more than
/// max_candidates, the most confident ones stay, equal ones in candidate order.
///
/// \param predictions  (B, 4 + C, A) floating point, any device: cx cy w h in pixels, then the
///                     probabilities of the classes
/// \return             B entries on the CPU, rows by falling confidence; neither clipped nor
/// limited
///                     in size. The same bits for any thread count and any B.
/// \throws Error (usage)  shape, type or settings out of range
std::vector<Detections> non_maximum_suppression(at::Tensor const& predictions,
                                                NmsSettings const& settings);

}  // namespace yolohpc::boxes
