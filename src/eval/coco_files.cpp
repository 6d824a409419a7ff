#include "yolohpc/eval/coco_files.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "json_records.hpp"
#include "sorted_ids.hpp"

namespace yolohpc::eval {
namespace {

using base::ExitCode;

CocoCategory category_of(JsonRecord const& record) {
  auto const id = record.integer(Field::id);
  return {id, record.has(Field::name) ? record.text(Field::name) : std::to_string(id)};
}

CocoObject object_of(JsonRecord const& record) {
  CocoObject object;
  object.id = record.integer(Field::id);
  object.image_id = record.integer(Field::image_id);
  object.category_id = record.integer(Field::category_id);
  object.box = record.box();
  object.area =
      record.has(Field::area) ? record.number(Field::area) : object.box[2] * object.box[3];
  object.is_crowd = record.has(Field::iscrowd) && record.integer(Field::iscrowd) != 0;
  return object;
}

CocoDetection detection_of(JsonRecord const& record) {
  CocoDetection detection;
  detection.image_id = record.integer(Field::image_id);
  detection.category_id = record.integer(Field::category_id);
  detection.box = record.box();
  detection.score = record.number(Field::score);
  return detection;
}

using Check = std::function<void(JsonRecord const&, CocoDetection const&)>;

std::vector<CocoDetection> read_checked(std::filesystem::path const& path, Check const& check) {
  std::vector<CocoDetection> detections;
  read_json_records(path, {""}, [&](JsonRecord const& record) {
    detections.push_back(detection_of(record));
    check(record, detections.back());
  });
  return detections;
}

// Halves go to even because nearbyint rounds so; the product is exact, the quotient the nearest
// double.
double to_decimals(double value, double scale) {
  return std::nearbyint(value * scale) / scale;
}

/// Text of known size limits, appended piece by piece.
class JsonText {
 public:
  void text(std::string_view piece) { text_.append(piece); }
  template <typename Number>
  void number(Number value) {
    char digits[32];
    auto const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text_.append(digits, end);
  }
  std::string const& str() const { return text_; }

 private:
  std::string text_;
};

void append(JsonText& out, CocoDetection const& detection, std::string const& file_name) {
  out.text("{\"image_id\":");
  out.number(detection.image_id);
  if (!file_name.empty()) {
    out.text(",\"file_name\":");
    out.text(
        nlohmann::json(file_name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  out.text(",\"category_id\":");
  out.number(detection.category_id);
  out.text(",\"bbox\":[");
  for (std::size_t i = 0; i < detection.box.size(); ++i) {
    if (i > 0) out.text(",");
    out.number(detection.box[i]);
  }
  out.text("],\"score\":");
  out.number(detection.score);
  out.text("}");
}

template <typename Detections, typename Append>
void write_list(std::filesystem::path const& path, Detections const& detections,
                Append&& append_one) {
  JsonText out;
  out.text("[");
  for (std::size_t i = 0; i < detections.size(); ++i) {
    out.text(i == 0 ? "\n" : ",\n");
    append_one(out, detections[i]);
  }
  out.text("\n]\n");
  base::write_file_atomically(path, out.str());
}

}  // namespace

CocoAnnotations read_annotations(std::filesystem::path const& path) {
  CocoAnnotations result;
  auto& [images, categories, objects] = result.dataset;
  std::unordered_set<std::int64_t> object_ids;
  auto take = [&](JsonRecord const& record) {
    if (record.section() == "images") {
      images.push_back(record.integer(Field::id));
    } else if (record.section() == "categories") {
      categories.push_back(category_of(record));
    } else {
      objects.push_back(object_of(record));
      auto const id = objects.back().id;
      if (!object_ids.insert(id).second) {
        record.fail(
            base::join("has the id ", id, " of an annotation before it. Number them anew."));
      }
    }
  };
  std::set<std::string> const wanted{"images", "categories", "annotations"};
  auto const seen = read_json_records(path, wanted, take);
  for (auto const& section : wanted) {
    YOLOHPC_CHECK_AS(ExitCode::bad_data, seen.contains(section), path.string(), " has no list \"",
                     section, "\" (COCO annotations have images, categories and annotations).");
  }
  if (object_ids.contains(0)) {
    result.warnings.push_back(
        base::join(path.string(),
                   ": an annotation has id 0. The reference evaluation, and this one,"
                   " count a hit on it as a miss. Number annotations from 1."));
  }
  return result;
}

std::vector<CocoDetection> read_detections(std::filesystem::path const& path) {
  return read_checked(path, [](JsonRecord const&, CocoDetection const&) {});
}

std::vector<CocoDetection> read_detections(std::filesystem::path const& path,
                                           CocoDataset const& dataset) {
  auto const image_ids = sorted_ids(dataset.image_ids);
  return read_checked(path, [&](JsonRecord const& record, CocoDetection const& detection) {
    if (std::binary_search(image_ids.begin(), image_ids.end(), detection.image_id)) return;
    record.fail(base::join("is of image ", detection.image_id,
                           ", which is not among the images of the ground truth. Remove it, or"
                           " evaluate against the annotations of the split that was predicted."));
  });
}

CocoDetection rounded(CocoDetection detection) {
  // Source: spec/postprocess.md section 7.
  constexpr double box_scale = 1e3;
  constexpr double score_scale = 1e5;
  for (auto& side : detection.box) side = to_decimals(side, box_scale);
  detection.score = to_decimals(detection.score, score_scale);
  return detection;
}

void write_detections(std::filesystem::path const& path,
                      std::span<NamedDetection const> detections) {
  write_list(path, detections, [](JsonText& out, NamedDetection const& named) {
    append(out, named.detection, named.file_name);
  });
}

void write_detections(std::filesystem::path const& path,
                      std::span<CocoDetection const> detections) {
  write_list(path, detections,
             [](JsonText& out, CocoDetection const& detection) { append(out, detection, {}); });
}

}  // namespace yolohpc::eval
