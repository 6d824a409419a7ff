#include "shard_format.hpp"

#include <cstdio>

#include "yolohpc/base/crc32c.hpp"
#include "yolohpc/base/error.hpp"

#include "byte_stream.hpp"

namespace yolohpc::data {
namespace {

/// First place 0, never falling, last place `end`: each entry has a stretch of its own.
bool is_ragged(std::vector<std::uint64_t> const& places, std::size_t entries, std::uint64_t end) {
  if (places.size() != entries + 1 || places.front() != 0 || places.back() != end) return false;
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i] < places[i - 1]) return false;
  }
  return true;
}

bool are_known(ShardTables const& tables) {
  for (std::size_t i = 0; i < tables.image_count(); ++i) {
    auto const format = static_cast<ImageFormat>(tables.image_format[i]);
    bool const is_known = format == ImageFormat::jpeg || format == ImageFormat::png;
    int const orientation = tables.image_orientation[i];
    if (!is_known || orientation < 1 || orientation > 8) return false;
    if (tables.image_width[i] < 1 || tables.image_height[i] < 1) return false;
  }
  return true;
}

bool are_classes(std::vector<std::int32_t> const& classes, std::size_t class_count) {
  for (std::int32_t const index : classes) {
    if (index < 0 || static_cast<std::size_t>(index) >= class_count) return false;
  }
  return true;
}

}  // namespace

std::uint32_t metadata_crc32c(ShardHeader const& header, ShardTables const& tables) {
  ByteWriter writer;
  writer.put(shard_format_version);
  writer.put(header.split);
  writer.put(header.shard);
  writer.put(header.shard_count);
  writer.put(header.first_image);
  writer.put(header.split_images);
  writer.put(header.digest);
  writer.put(static_cast<std::uint64_t>(header.categories.size()));
  for (Category const& category : header.categories) {
    writer.put(category.id);
    writer.put(category.name);
  }
  std::uint32_t crc = base::crc32c(writer.bytes());
  for_each_table(tables, [&crc](char const*, auto const& column, int) {
    std::uint64_t const count = column.size();
    crc = base::crc32c(&count, sizeof count, crc);
    crc = base::crc32c(std::as_bytes(std::span(column)), crc);
  });
  return crc;
}

void check_tables(ShardTables const& tables, std::uint64_t image_bytes, std::size_t class_count,
                  std::string const& origin) {
  std::size_t const images = tables.image_count();
  std::size_t const labels = tables.label_count();
  auto const require = [&origin](bool holds, char const* what) {
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, holds, origin, ": ", what,
                     ". Pack the split again or copy the file again.");
  };
  require(tables.image_crc32c.size() == images && tables.image_width.size() == images &&
              tables.image_height.size() == images && tables.image_format.size() == images &&
              tables.image_orientation.size() == images,
          "the image tables differ in length");
  require(tables.label_xywh.size() == 4 * labels && tables.label_class.size() == labels &&
              tables.label_area.size() == labels && tables.label_iscrowd.size() == labels,
          "the label tables differ in length");
  require(is_ragged(tables.image_offset, images, image_bytes),
          "image_offset does not divide image_bytes (length)");
  require(is_ragged(tables.name_offset, images, tables.name_bytes.size()),
          "name_offset does not divide name_bytes (length)");
  require(is_ragged(tables.label_offset, images, labels),
          "label_offset does not divide the labels (length)");
  require(are_known(tables), "an image has a size, format or orientation that does not exist");
  require(are_classes(tables.label_class, class_count), "a label has a class that does not exist");
}

std::string shard_file_name(std::string const& split, int shard, int shard_count) {
  char tail[48];
  std::snprintf(tail, sizeof tail, "-%05d-of-%05d.h5", shard, shard_count);
  return split + tail;
}

std::string shard_words(int shard, int shard_count, std::filesystem::path const& path) {
  return base::join("shard ", shard, " of ", shard_count, " (", path.string(), ")");
}

}  // namespace yolohpc::data
