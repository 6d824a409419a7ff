// What a label source (COCO instances JSON, YOLO folder) says, before any image is opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yolohpc/data/shard_set.hpp"

namespace yolohpc::data {

/// An image or a label that cannot be packed.
struct PackFault {
  /// image_missing_file, image_unreadable, image_undecodable, image_size_mismatch,
  /// duplicate_image_id, annotation_unknown_image, annotation_unknown_category, annotation_bad_box
  std::string kind;
  std::string file;                           ///< file_name of the image; empty for an annotation
  std::optional<std::int64_t> image_id;       ///< of an image
  std::optional<std::int64_t> annotation_id;  ///< of an annotation
  std::string reason;                         ///< what is wrong, with the value seen
};

struct SourceImage {
  std::int64_t id = 0;
  std::string file_name;  ///< relative to the image folder, normalised, stays inside it; UTF-8
  int width_px = 0;       ///< 0: not given, taken from the file
  int height_px = 0;
  bool excluded = false;  ///< a fault of the list itself; not to be opened
};

/// Unit of the boxes of a LabelSource.
enum class BoxUnit : std::uint8_t {
  pixels,         ///< left, top, width, height
  image_fraction  ///< centre x, centre y, width, height over the image's width and height
};

struct LabelSource {
  std::filesystem::path image_root;     ///< what the file names are relative to
  std::vector<Category> categories;     ///< ascending ids; the place is the class index
  std::vector<SourceImage> images;      ///< in the order of the source
  std::vector<Annotation> annotations;  ///< grouped by image, inside an image in the source's order
  std::vector<std::uint64_t> first_annotation;  ///< images + 1 entries
  BoxUnit unit = BoxUnit::pixels;
  std::vector<PackFault> faults;
  std::map<std::string, std::int64_t> converted;  ///< harmless findings: name, count
};

/// Reads a COCO instances file in one pass, whatever its size; memory is what the result needs,
/// polygons and unknown keys are skipped. A byte-order mark is accepted, NaN and Infinity (which
/// Python writes) are taken as bad numbers of the annotation they stand in. \throws Error (bad
/// data)  not JSON (with the byte offset), nesting too deep, no images, an id that is not
///     a 64-bit integer, a file name that leaves the image folder, a category listed twice: what
///     makes the whole file doubtful. Everything that spoils one image or label goes to `faults`.
/// \param image_root  the folder with the images; not looked into
LabelSource read_coco_json(std::filesystem::path const& file,
                           std::filesystem::path const& image_root);

/// A YOLO data set: `data.yaml` (`path`, the split's entry, `names`) and one text file per image
/// with rows `class cx cy w h`. The split's entry is a folder, a text file with one image a line,
/// or a list of such. The labels of `.../images/x/a.jpg` are in `.../labels/x/a.txt`; an image
/// without label file is background. Images are numbered from 1 in the order of their paths,
/// annotations from 1 in the order of the rows; category ids are the classes. A row with other than
/// 5 columns, an unknown class or a value outside
/// [-0.01, 1.01] goes to `faults`.
/// \param root  replaces `path` of the yaml file when not empty
/// \throws Error (bad data)  the yaml file lacks the split or the names, a folder is missing, no
/// images
LabelSource read_yolo_folder(std::filesystem::path const& yaml, std::string const& split,
                             std::filesystem::path const& root);

/// A file name as a path below the image folder. \throws Error (bad data)  it is empty, absolute or
/// leaves it
std::string contained_file_name(std::string const& name, std::string const& place);

}  // namespace yolohpc::data
