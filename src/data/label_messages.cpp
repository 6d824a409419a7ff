#include "label_messages.hpp"

#include <optional>

#include "byte_stream.hpp"
#include "rank_group.hpp"

namespace yolohpc::data {
namespace {

void put(ByteWriter& writer, std::optional<std::int64_t> value) {
  writer.put(value.has_value());
  writer.put(value.value_or(0));
}

std::optional<std::int64_t> get_optional(ByteReader& reader) {
  bool const has_value = reader.get<bool>();
  auto const value = reader.get<std::int64_t>();
  return has_value ? std::optional(value) : std::nullopt;
}

void put(ByteWriter& writer, SourceImage const& image) {
  writer.put(image.id);
  writer.put(image.file_name);
  writer.put(image.width_px);
  writer.put(image.height_px);
  writer.put(image.excluded);
}

SourceImage get_image(ByteReader& reader) {
  SourceImage image;
  image.id = reader.get<std::int64_t>();
  image.file_name = reader.get_text();
  image.width_px = reader.get<int>();
  image.height_px = reader.get<int>();
  image.excluded = reader.get<bool>();
  return image;
}

void put(ByteWriter& writer, Annotation const& annotation) {
  writer.put(annotation.id);
  for (double const value : annotation.xywh_px) writer.put(value);
  writer.put(annotation.area);
  writer.put(annotation.class_index);
  writer.put(annotation.is_crowd);
}

Annotation get_annotation(ByteReader& reader) {
  Annotation annotation;
  annotation.id = reader.get<std::int64_t>();
  for (double& value : annotation.xywh_px) value = reader.get<double>();
  annotation.area = reader.get<double>();
  annotation.class_index = reader.get<std::int32_t>();
  annotation.is_crowd = reader.get<bool>();
  return annotation;
}

void put(ByteWriter& writer, PackFault const& fault) {
  writer.put(fault.kind);
  writer.put(fault.file);
  put(writer, fault.image_id);
  put(writer, fault.annotation_id);
  writer.put(fault.reason);
}

PackFault get_fault(ByteReader& reader) {
  PackFault fault;
  fault.kind = reader.get_text();
  fault.file = reader.get_text();
  fault.image_id = get_optional(reader);
  fault.annotation_id = get_optional(reader);
  fault.reason = reader.get_text();
  return fault;
}

void put(ByteWriter& writer, Category const& category) {
  writer.put(category.id);
  writer.put(category.name);
}

Category get_category(ByteReader& reader) {
  auto const id = reader.get<std::int64_t>();
  return {id, reader.get_text()};
}

template <typename T>
void put_list(ByteWriter& writer, std::vector<T> const& values) {
  writer.put(static_cast<std::uint64_t>(values.size()));
  for (T const& value : values) put(writer, value);
}

template <typename T>
std::vector<T> get_list(ByteReader& reader, T (*get)(ByteReader&)) {
  std::vector<T> values(reader.get<std::uint64_t>());
  for (T& value : values) value = get(reader);
  return values;
}

}  // namespace

std::vector<std::byte> bytes_of_labels(LabelSource const& source) {
  ByteWriter writer;
  writer.put(source.image_root.native());
  put_list(writer, source.categories);
  put_list(writer, source.images);
  put_list(writer, source.annotations);
  writer.put_all(std::span(source.first_annotation));
  writer.put(source.unit);
  put_list(writer, source.faults);
  writer.put(static_cast<std::uint64_t>(source.converted.size()));
  for (auto const& [name, count] : source.converted) {
    writer.put(name);
    writer.put(count);
  }
  return std::move(writer).take();
}

LabelSource labels_of_bytes(std::span<std::byte const> bytes) {
  ByteReader reader(bytes);
  LabelSource source;
  source.image_root = reader.get_text();
  source.categories = get_list(reader, get_category);
  source.images = get_list(reader, get_image);
  source.annotations = get_list(reader, get_annotation);
  source.first_annotation = reader.get_all<std::uint64_t>();
  source.unit = reader.get<BoxUnit>();
  source.faults = get_list(reader, get_fault);
  auto const conversions = reader.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < conversions; ++i) {
    std::string const name = reader.get_text();
    source.converted[name] = reader.get<std::int64_t>();
  }
  return source;
}

LabelSource read_on_root(RankGroup const& group, std::function<LabelSource()> const& read) {
  return labels_of_bytes(bytes_of_root(group, [&read] { return bytes_of_labels(read()); }));
}

}  // namespace yolohpc::data
