// What is in one shard file: its header, its tables, their names. preprocess/README.md is the
// description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "yolohpc/data/shard_set.hpp"

namespace yolohpc::data {

/// Raised whenever a reader of the old layout would misread the new one.
inline constexpr std::uint32_t shard_format_version = 1;
inline constexpr char shard_format_name[] = "yolohpc-shard";
inline constexpr char image_bytes_name[] = "image_bytes";

/// Attributes of a shard.
struct ShardHeader {
  std::string split;
  std::int32_t shard = 0;  ///< k of shard_count, from 0
  std::int32_t shard_count = 1;
  std::int64_t first_image = 0;   ///< number of its first image in the split
  std::int64_t split_images = 0;  ///< images of the whole split
  std::string digest;             ///< of the split's content, 64 hex digits
  std::vector<Category> categories;
};

/// Columns of a shard with I images and L labels; a ragged column comes with I + 1 places.
struct ShardTables {
  std::vector<std::uint64_t> image_offset{0};  ///< (I + 1) into image_bytes
  std::vector<std::uint32_t> image_crc32c;
  std::vector<std::int64_t> image_id;
  std::vector<std::int32_t> image_width;
  std::vector<std::int32_t> image_height;
  std::vector<std::uint8_t> image_format;
  std::vector<std::uint8_t> image_orientation;
  std::vector<std::uint64_t> name_offset{0};  ///< (I + 1) into name_bytes
  std::vector<std::uint8_t> name_bytes;
  std::vector<std::uint64_t> label_offset{0};  ///< (I + 1) into the label columns
  std::vector<std::int64_t> label_id;
  std::vector<double> label_xywh;  ///< (L, 4)
  std::vector<std::int32_t> label_class;
  std::vector<double> label_area;
  std::vector<std::uint8_t> label_iscrowd;

  std::size_t image_count() const { return image_id.size(); }
  std::size_t label_count() const { return label_id.size(); }
};

/// Calls visit(name, column, values per row) for each table in the order of the file.
template <typename Tables, typename Visit>
void for_each_table(Tables& tables, Visit&& visit) {
  visit("image_offset", tables.image_offset, 1);
  visit("image_crc32c", tables.image_crc32c, 1);
  visit("image_id", tables.image_id, 1);
  visit("image_width", tables.image_width, 1);
  visit("image_height", tables.image_height, 1);
  visit("image_format", tables.image_format, 1);
  visit("image_orientation", tables.image_orientation, 1);
  visit("name_offset", tables.name_offset, 1);
  visit("name_bytes", tables.name_bytes, 1);
  visit("label_offset", tables.label_offset, 1);
  visit("label_id", tables.label_id, 1);
  visit("label_xywh", tables.label_xywh, 4);
  visit("label_class", tables.label_class, 1);
  visit("label_area", tables.label_area, 1);
  visit("label_iscrowd", tables.label_iscrowd, 1);
}

/// CRC-32C over header and tables, stored beside them.
std::uint32_t metadata_crc32c(ShardHeader const& header, ShardTables const& tables);

/// \throws Error (bad data)  lengths or places that contradict each other; `origin` begins the text
void check_tables(ShardTables const& tables, std::uint64_t image_bytes, std::size_t class_count,
                  std::string const& origin);

/// "train-00000-of-00016.h5"
std::string shard_file_name(std::string const& split, int shard, int shard_count);

/// "shard 3 of 16 (PATH)": how messages name a shard.
std::string shard_words(int shard, int shard_count, std::filesystem::path const& path);

}  // namespace yolohpc::data
