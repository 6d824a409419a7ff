#include "yolohpc/eval/summary.hpp"

#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

namespace yolohpc::eval {
namespace {

using Json = nlohmann::ordered_json;

struct Line {
  char const* iou;
  char const* area;
  int limit;  ///< position among the detection limits
};
// In the order of CocoNumber.
constexpr Line lines[coco_number_count] = {
    {"0.50:0.95", "all", 2},   {"0.50", "all", 2},         {"0.75", "all", 2},
    {"0.50:0.95", "small", 2}, {"0.50:0.95", "medium", 2}, {"0.50:0.95", "large", 2},
    {"0.50:0.95", "all", 0},   {"0.50:0.95", "all", 1},    {"0.50:0.95", "all", 2},
    {"0.50:0.95", "small", 2}, {"0.50:0.95", "medium", 2}, {"0.50:0.95", "large", 2}};

void add_numbers(Json& object, CocoNumbers const& numbers) {
  for (int i = 0; i < coco_number_count; ++i)
    object[std::string(coco_number_names[i])] = numbers[i];
}

}  // namespace

std::string summary_text(CocoResults const& results) {
  std::string text;
  for (int i = 0; i < coco_number_count; ++i) {
    bool const is_precision = i < AR1;
    char line[128];
    std::snprintf(line, sizeof line, " %-18s %s @[ IoU=%-9s | area=%6s | maxDets=%3d ] = %0.3f\n",
                  is_precision ? "Average Precision" : "Average Recall",
                  is_precision ? "(AP)" : "(AR)", lines[i].iou, lines[i].area,
                  results.detection_limits[lines[i].limit], results.numbers[i]);
    text += line;
  }
  return text;
}

std::string summary_json(CocoResults const& results, std::span<CocoCategory const> categories,
                         double seconds) {
  std::map<std::int64_t, std::string> names;
  for (auto const& category : categories) names[category.id] = category.name;
  Json object;
  add_numbers(object, results.numbers);
  object["per_category"] = Json::array();
  for (auto const& category : results.per_category) {
    Json entry;
    entry["id"] = category.id;
    auto const name = names.find(category.id);
    entry["name"] = name == names.end() ? std::to_string(category.id) : name->second;
    add_numbers(entry, category.numbers);
    entry["AP_by_iou"] = category.ap_by_iou;
    entry["recall_by_iou"] = category.recall_by_iou;
    object["per_category"].push_back(std::move(entry));
  }
  object["images"] = results.images;
  object["detections"] = results.detections;
  object["seconds"] = seconds;
  return object.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace yolohpc::eval
