#include "yolohpc/data/shard_set.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "yolohpc/base/crc32c.hpp"
#include "yolohpc/base/error.hpp"

#include "file_descriptor.hpp"
#include "manifest.hpp"
#include "shard_reader.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;

constexpr char cure[] = ". Copy the file again or pack the split again.";

template <typename... Parts>
[[noreturn]] void reject(Parts const&... parts) {
  base::fail(base::ExitCode::bad_data, parts..., cure);
}

/// A shard whose tables are in memory and whose image bytes are within reach.
struct OpenShard {
  std::string words;
  ShardContent content;
  FileDescriptor file;

  Record record(int shard, std::size_t index) const;
  void read_into(std::size_t index, std::vector<std::byte>& bytes) const;
};

Record OpenShard::record(int shard, std::size_t index) const {
  ShardTables const& tables = content.tables;
  auto const* names = reinterpret_cast<char const*>(tables.name_bytes.data());
  return {.image_id = tables.image_id[index],
          .file_name = {names + tables.name_offset[index],
                        tables.name_offset[index + 1] - tables.name_offset[index]},
          .width_px = tables.image_width[index],
          .height_px = tables.image_height[index],
          .format = static_cast<ImageFormat>(tables.image_format[index]),
          .orientation = tables.image_orientation[index],
          .size_bytes = tables.image_offset[index + 1] - tables.image_offset[index],
          .shard = shard,
          .index_in_shard = static_cast<std::int64_t>(index)};
}

void OpenShard::read_into(std::size_t index, std::vector<std::byte>& bytes) const {
  ShardTables const& tables = content.tables;
  bytes.resize(tables.image_offset[index + 1] - tables.image_offset[index]);
  auto const name_of_record = [&] {
    Record const named = record(content.header.shard, index);
    return base::join(words, ", record ", index, " (image id ", named.image_id, ", ",
                      named.file_name, "): ");
  };
  std::size_t const count =
      file.read_at(content.payload_offset + tables.image_offset[index], bytes);
  if (count != bytes.size()) {
    reject(name_of_record(), "length: the file ends after ", count, " of its ", bytes.size(),
           " bytes");
  }
  std::uint32_t const crc = base::crc32c(bytes);
  if (crc != tables.image_crc32c[index]) {
    reject(name_of_record(), "CRC-32C is ", crc, ", stored is ", tables.image_crc32c[index]);
  }
}

void check_length(ManifestShard const& entry, fs::path const& path, std::string const& words) {
  if (!fs::exists(path)) reject(words, " is missing");
  std::uint64_t const found = fs::file_size(path);
  if (found == entry.bytes) return;
  reject(words, " has ", found, " bytes, the manifest says ", entry.bytes, " (length: the file is ",
         found < entry.bytes ? "cut short" : "another one", ")");
}

void check_membership(ShardHeader const& header, Manifest const& manifest, int shard,
                      std::int64_t first_image, std::string const& words) {
  auto const shard_count = static_cast<std::int32_t>(manifest.shards.size());
  if (header.split != manifest.split) reject(words, " belongs to split '", header.split, "'");
  if (header.shard != shard || header.shard_count != shard_count) {
    reject(words, " says of itself that it is shard ", header.shard, " of ", header.shard_count);
  }
  if (header.digest != manifest.digest) {
    reject(words, " belongs to another packing: its digest is ", header.digest,
           ", that of the split ", manifest.digest);
  }
  if (header.first_image != first_image || header.split_images != manifest.images) {
    reject(words, " begins with image ", header.first_image, " of ", header.split_images,
           " (expected ", first_image, " of ", manifest.images, ")");
  }
}

OpenShard open_shard(fs::path const& folder, Manifest const& manifest, int shard,
                     std::int64_t first_image) {
  ManifestShard const& entry = manifest.shards[static_cast<std::size_t>(shard)];
  fs::path const path = folder / entry.file;
  std::string const words = shard_words(shard, static_cast<int>(manifest.shards.size()), path);
  check_length(entry, path, words);
  OpenShard opened{words, read_shard(path, words), FileDescriptor::open_to_read(path)};
  check_membership(opened.content.header, manifest, shard, first_image, words);
  auto const images = static_cast<std::int64_t>(opened.content.tables.image_count());
  if (images != entry.images) {
    reject(words, " has ", images, " images, the manifest says ", entry.images);
  }
  return opened;
}

}  // namespace

struct ShardSet::State {
  Manifest manifest;
  std::vector<Category> categories;
  std::vector<fs::path> files;
  std::vector<OpenShard> shards;
  std::vector<std::int64_t> first_image;        ///< (shards + 1)
  std::vector<Annotation> annotations;          ///< of all images, in their order
  std::vector<std::uint64_t> first_annotation;  ///< (images + 1)

  State(fs::path const& folder, std::string const& split);
  void add_annotations(ShardTables& tables);
  /// Shard of an image and its place in it.
  std::pair<std::size_t, std::size_t> find(std::int64_t index) const;
};

ShardSet::State::State(fs::path const& folder, std::string const& split)
    : manifest(read_manifest(folder, split)), first_image{0}, first_annotation{0} {
  files.push_back(manifest_path(folder, split));
  for (int shard = 0; shard < static_cast<int>(manifest.shards.size()); ++shard) {
    shards.push_back(open_shard(folder, manifest, shard, first_image.back()));
    OpenShard& opened = shards.back();
    files.push_back(folder / manifest.shards[static_cast<std::size_t>(shard)].file);
    first_image.push_back(first_image.back() +
                          static_cast<std::int64_t>(opened.content.tables.image_count()));
    add_annotations(opened.content.tables);
    categories = std::move(opened.content.header.categories);
  }
  if (shards.empty() || first_image.back() != manifest.images) {
    reject(files.front().string(), " says ", manifest.images, " images, its ", shards.size(),
           " shards hold ", first_image.back());
  }
}

/// Takes the labels out of the tables.
void ShardSet::State::add_annotations(ShardTables& tables) {
  std::uint64_t const base = annotations.size();
  for (std::size_t i = 1; i < tables.label_offset.size(); ++i) {
    first_annotation.push_back(base + tables.label_offset[i]);
  }
  annotations.reserve(annotations.size() + tables.label_count());
  for (std::size_t i = 0; i < tables.label_count(); ++i) {
    auto const* xywh = tables.label_xywh.data() + 4 * i;
    annotations.push_back({.id = tables.label_id[i],
                           .xywh_px = {xywh[0], xywh[1], xywh[2], xywh[3]},
                           .area = tables.label_area[i],
                           .class_index = tables.label_class[i],
                           .is_crowd = tables.label_iscrowd[i] != 0});
  }
  tables.label_offset = {0};
  tables.label_id = {};
  tables.label_xywh = {};
  tables.label_class = {};
  tables.label_area = {};
  tables.label_iscrowd = {};
}

std::pair<std::size_t, std::size_t> ShardSet::State::find(std::int64_t index) const {
  assert(index >= 0 && index < manifest.images);
  auto const after = std::upper_bound(first_image.begin(), first_image.end(), index);
  auto const shard = static_cast<std::size_t>(after - first_image.begin()) - 1;
  return {shard, static_cast<std::size_t>(index - first_image[shard])};
}

ShardSet::ShardSet(fs::path const& folder, std::string const& split)
    : state_(std::make_unique<State const>(folder, split)) {}
ShardSet::ShardSet(ShardSet&&) noexcept = default;
ShardSet& ShardSet::operator=(ShardSet&&) noexcept = default;
ShardSet::~ShardSet() = default;

std::string const& ShardSet::split() const {
  return state_->manifest.split;
}
std::int64_t ShardSet::size() const {
  return state_->manifest.images;
}
int ShardSet::shard_count() const {
  return static_cast<int>(state_->shards.size());
}
std::string const& ShardSet::digest() const {
  return state_->manifest.digest;
}
std::vector<Category> const& ShardSet::categories() const {
  return state_->categories;
}
std::vector<fs::path> const& ShardSet::files() const {
  return state_->files;
}

std::int64_t ShardSet::first_of_shard(int shard) const {
  return state_->first_image[static_cast<std::size_t>(shard)];
}

Record ShardSet::record(std::int64_t index) const {
  auto const [shard, place] = state_->find(index);
  return state_->shards[shard].record(static_cast<int>(shard), place);
}

std::span<Annotation const> ShardSet::annotations(std::int64_t index) const {
  assert(index >= 0 && index < size());
  auto const place = static_cast<std::size_t>(index);
  std::uint64_t const first = state_->first_annotation[place];
  return std::span(state_->annotations).subspan(first, state_->first_annotation[place + 1] - first);
}

std::vector<TrainingBox> ShardSet::training_boxes(std::int64_t index) const {
  Record const record = this->record(index);
  return data::training_boxes(annotations(index), record.width_px, record.height_px).boxes;
}

std::vector<std::byte> ShardSet::read_bytes(std::int64_t index) const {
  std::vector<std::byte> bytes;
  read_bytes_into(index, bytes);
  return bytes;
}

void ShardSet::read_bytes_into(std::int64_t index, std::vector<std::byte>& bytes) const {
  auto const [shard, place] = state_->find(index);
  state_->shards[shard].read_into(place, bytes);
}

}  // namespace yolohpc::data
