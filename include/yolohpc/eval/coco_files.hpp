// COCO files: annotations and results, read and written.
//
// Files are read record by record, so memory is that of the records and not of the JSON.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "yolohpc/eval/coco.hpp"

namespace yolohpc::eval {

/// Annotations as evaluation needs them, and what the user should know about them.
struct CocoAnnotations {
  CocoDataset dataset;
  std::vector<std::string> warnings;  ///< sentences; the file is usable all the same
};

/// Reads a file in the layout of COCO's instances_*.json.
///
/// A missing iscrowd is 0, a missing area is w * h, a missing category name is the id. Other
/// fields, and annotations of unlisted images and categories, do no harm. Warns of an annotation
/// with id 0. \throws Error (bad data)  not JSON; no "images", "categories" or "annotations"; a
/// field is missing
///                           or not a number; an annotation id twice. Names file, record and field
CocoAnnotations read_annotations(std::filesystem::path const& path);

/// Reads a results file: a list of {image_id, category_id, bbox, score}. An empty list is fine.
/// \throws Error (bad data)  as above
std::vector<CocoDetection> read_detections(std::filesystem::path const& path);

/// The same, and every image has to be one of the data set.
/// \throws Error (bad data)  names the record and its image id
std::vector<CocoDetection> read_detections(std::filesystem::path const& path,
                                           CocoDataset const& dataset);

/// A result with the name of its picture; an empty name is left out.
struct NamedDetection {
  CocoDetection detection;
  std::string file_name;
};

/// A box and a score with the decimals that results files have: 3 and 5, halves to even, as the
/// nearest double of that decimal number. Evaluating rounded detections gives what evaluating the
/// file gives.
///
/// Exact for float32 values up to 1e9.
CocoDetection rounded(CocoDetection detection);

/// Writes a results file; the same detections give the same bytes. Numbers are the shortest that
/// read back as the same double: round first. \throws Error  the file cannot be written
void write_detections(std::filesystem::path const& path,
                      std::span<NamedDetection const> detections);
void write_detections(std::filesystem::path const& path, std::span<CocoDetection const> detections);

}  // namespace yolohpc::eval
