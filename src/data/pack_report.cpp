#include <nlohmann/json.hpp>

#include "yolohpc/data/packer.hpp"

namespace yolohpc::data {
namespace {

using nlohmann::ordered_json;

ordered_json fault_json(PackFault const& fault) {
  ordered_json entry;
  if (!fault.file.empty()) entry["file"] = fault.file;
  if (fault.image_id) entry["image_id"] = *fault.image_id;
  if (fault.annotation_id) entry["id"] = *fault.annotation_id;
  entry["kind"] = fault.kind;
  entry["reason"] = fault.reason;
  return entry;
}

}  // namespace

std::string to_json(PackReport const& report) {
  ordered_json result{
      {"split", report.split},   {"packed", report.packed}, {"images", report.images},
      {"boxes", report.boxes},   {"crowd", report.crowd},   {"background", report.background},
      {"shards", report.shards}, {"bytes", report.bytes},   {"digest", report.digest}};
  auto& skipped = result["skipped"] = ordered_json::array();
  for (PackFault const& fault : report.skipped) skipped.push_back(fault_json(fault));
  result["converted"] = report.converted;
  // Names of files may hold any bytes; a report must be written all the same.
  return result.dump(1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace yolohpc::data
