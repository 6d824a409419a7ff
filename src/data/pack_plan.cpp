#include "pack_plan.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "sha256.hpp"

namespace yolohpc::data {
namespace {

/// Names the way the digest is made; changes with it.
constexpr char digest_kind[] = "yolohpc-content-1";

void put_annotation(ByteWriter& writer, Annotation const& annotation) {
  writer.put(annotation.id);
  for (double const value : annotation.xywh_px) writer.put(value);
  writer.put(annotation.area);
  writer.put(annotation.class_index);
  writer.put(annotation.is_crowd);
}

/// Everything that training or evaluation can see of an image.
void digest_image(Sha256& hash, SourceImage const& image, ImageCheck const& check,
                  std::vector<Annotation> const& annotations) {
  ByteWriter writer;
  writer.put(image.id);
  writer.put(image.file_name);
  writer.put(check.width_px);
  writer.put(check.height_px);
  writer.put(check.info.format);
  writer.put(check.orientation);
  writer.put_all(std::span<std::byte const>(check.digest));
  writer.put(static_cast<std::uint64_t>(annotations.size()));
  for (Annotation const& annotation : annotations) put_annotation(writer, annotation);
  hash.update(writer.bytes());
}

void digest_categories(Sha256& hash, std::vector<Category> const& categories) {
  ByteWriter writer;
  writer.put(digest_kind);
  writer.put(static_cast<std::uint64_t>(categories.size()));
  for (Category const& category : categories) {
    writer.put(category.id);
    writer.put(category.name);
  }
  hash.update(writer.bytes());
}

void add_count(std::map<std::string, std::int64_t>& counts, char const* name, std::int64_t count) {
  if (count > 0) counts[name] += count;
}

void count_boxes(TrainingBoxes const& boxes, PackReport& report) {
  report.boxes += static_cast<std::int64_t>(boxes.boxes.size());
  report.crowd += boxes.crowd;
  report.background += boxes.boxes.empty() ? 1 : 0;
  add_count(report.converted, "box_clipped", boxes.clipped);
  add_count(report.converted, "box_empty", boxes.empty);
  add_count(report.converted, "box_outside", boxes.outside);
  add_count(report.converted, "box_dropped", boxes.empty + boxes.outside);
  add_count(report.converted, "box_duplicate", boxes.duplicate);
}

PackFault fault_of(SourceImage const& image, ImageCheck const& check) {
  return {.kind = check.fault_kind,
          .file = image.file_name,
          .image_id = image.id,
          .annotation_id = std::nullopt,
          .reason = check.fault};
}

/// Images in order; a shard ends before the image that would make it longer than the limit.
std::vector<std::size_t> cut_shards(PackPlan const& plan, std::vector<ImageCheck> const& checks,
                                    std::int64_t shard_bytes) {
  std::vector<std::size_t> begin{0};
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < plan.kept.size(); ++i) {
    std::uint64_t const size = checks[plan.kept[i]].size_bytes;
    if (filled > 0 && filled + size > static_cast<std::uint64_t>(shard_bytes)) {
      begin.push_back(i);
      filled = 0;
    }
    filled += size;
  }
  begin.push_back(plan.kept.size());
  return begin;
}

void append_annotation(ShardTables& tables, Annotation const& annotation) {
  tables.label_id.push_back(annotation.id);
  tables.label_xywh.insert(tables.label_xywh.end(), annotation.xywh_px.begin(),
                           annotation.xywh_px.end());
  tables.label_class.push_back(annotation.class_index);
  tables.label_area.push_back(annotation.area);
  tables.label_iscrowd.push_back(annotation.is_crowd ? 1 : 0);
}

void append_image(ShardTables& tables, SourceImage const& image, ImageCheck const& check) {
  tables.image_offset.push_back(tables.image_offset.back() + check.size_bytes);
  tables.image_crc32c.push_back(check.crc32c);
  tables.image_id.push_back(image.id);
  tables.image_width.push_back(check.width_px);
  tables.image_height.push_back(check.height_px);
  tables.image_format.push_back(static_cast<std::uint8_t>(check.info.format));
  tables.image_orientation.push_back(static_cast<std::uint8_t>(check.orientation));
  tables.name_bytes.insert(tables.name_bytes.end(), image.file_name.begin(), image.file_name.end());
  tables.name_offset.push_back(tables.name_bytes.size());
}

}  // namespace

std::vector<Annotation> annotations_of(LabelSource const& source, std::size_t image, int width_px,
                                       int height_px) {
  auto const begin = source.annotations.begin();
  std::vector<Annotation> annotations(
      begin + static_cast<std::ptrdiff_t>(source.first_annotation[image]),
      begin + static_cast<std::ptrdiff_t>(source.first_annotation[image + 1]));
  if (source.unit == BoxUnit::pixels) return annotations;
  for (Annotation& annotation : annotations) {
    auto const [cx, cy, w, h] = annotation.xywh_px;
    annotation.xywh_px = {(cx - w / 2) * width_px, (cy - h / 2) * height_px, w * width_px,
                          h * height_px};
    annotation.area = annotation.xywh_px[2] * annotation.xywh_px[3];
  }
  return annotations;
}

PackPlan make_plan(LabelSource const& source, std::vector<ImageCheck> const& checks,
                   PackSettings const& settings) {
  PackPlan plan;
  PackReport& report = plan.report;
  report.split = settings.split;
  report.skipped = source.faults;
  report.converted = source.converted;
  Sha256 hash;
  digest_categories(hash, source.categories);
  for (std::size_t i = 0; i < source.images.size(); ++i) {
    SourceImage const& image = source.images[i];
    ImageCheck const& check = checks[i];
    if (image.excluded) continue;
    if (!check.is_good()) {
      report.skipped.push_back(fault_of(image, check));
      continue;
    }
    auto const annotations = annotations_of(source, i, check.width_px, check.height_px);
    count_boxes(training_boxes(annotations, check.width_px, check.height_px), report);
    count_conversions(check, report.converted);
    digest_image(hash, image, check, annotations);
    report.bytes += static_cast<std::int64_t>(check.size_bytes);
    plan.kept.push_back(i);
  }
  report.digest = hex_of(hash.finish());
  report.images = static_cast<std::int64_t>(plan.kept.size());
  plan.shard_begin = cut_shards(plan, checks, settings.shard_bytes);
  report.shards = plan.shard_count();
  return plan;
}

ShardHeader header_of_shard(LabelSource const& source, PackPlan const& plan, int shard) {
  return {
      .split = plan.report.split,
      .shard = shard,
      .shard_count = plan.shard_count(),
      .first_image = static_cast<std::int64_t>(plan.shard_begin[static_cast<std::size_t>(shard)]),
      .split_images = plan.report.images,
      .digest = plan.report.digest,
      .categories = source.categories};
}

ShardTables tables_of_shard(LabelSource const& source, std::vector<ImageCheck> const& checks,
                            PackPlan const& plan, int shard) {
  ShardTables tables;
  auto const place = static_cast<std::size_t>(shard);
  for (std::size_t k = plan.shard_begin[place]; k < plan.shard_begin[place + 1]; ++k) {
    std::size_t const i = plan.kept[k];
    append_image(tables, source.images[i], checks[i]);
    for (Annotation const& annotation :
         annotations_of(source, i, checks[i].width_px, checks[i].height_px)) {
      append_annotation(tables, annotation);
    }
    tables.label_offset.push_back(tables.label_count());
  }
  return tables;
}

}  // namespace yolohpc::data
