// The twelve numbers as people read them and as programs do.
#pragma once

#include <span>
#include <string>

#include "yolohpc/eval/coco.hpp"

namespace yolohpc::eval {

/// Twelve lines in the layout of pycocotools, with 3 decimals, each ended by a newline:
///
///      Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.500
///
/// Undefined numbers read -1.000.
std::string summary_text(CocoResults const& results);

/// One JSON object: the twelve numbers by name, per_category (id, name and the same for each, with
/// AP_by_iou and recall_by_iou), images, detections, seconds.
/// \param categories  give the names; a category that is not among them is called by its id
std::string summary_json(CocoResults const& results, std::span<CocoCategory const> categories,
                         double seconds);

}  // namespace yolohpc::eval
