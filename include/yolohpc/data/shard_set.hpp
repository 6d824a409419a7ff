// ShardSet: the packed images and labels of one split, read-only and from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yolohpc/data/image.hpp"

namespace yolohpc::data {

/// A category of the source. Its class index is its place in ascending order of ids.
struct Category {
  std::int64_t id = 0;
  std::string name;
};

/// One packed picture. Width and height are those after the turn, which is what boxes refer to.
struct Record {
  std::int64_t image_id = 0;
  std::string_view file_name;  ///< relative to the image folder it was packed from, UTF-8
  int width_px = 0;
  int height_px = 0;
  ImageFormat format = ImageFormat::unknown;
  int orientation = 1;           ///< turn that the decoder has to apply, 1..8; 1: none
  std::uint64_t size_bytes = 0;  ///< length of the encoded picture
  int shard = 0;
  std::int64_t index_in_shard = 0;
};

/// An annotation as the source gave it: neither clipped nor filtered. Evaluation needs it so.
struct Annotation {
  std::int64_t id = 0;
  std::array<double, 4> xywh_px{};  ///< left, top, width, height
  double area = 0;                  ///< the source's area field (w * h where it had none), px^2
  std::int32_t class_index = 0;     ///< 0 .. C-1
  bool is_crowd = false;
};

/// A training target: inside its image and not empty.
struct TrainingBox {
  std::array<double, 4> xyxy_px{};  ///< x1 < x2, y1 < y2
  std::int32_t class_index = 0;

  bool operator==(TrainingBox const&) const = default;
};

/// What becomes of one image's annotations in training.
struct TrainingBoxes {
  std::vector<TrainingBox> boxes;  ///< in the order of the annotations
  int crowd = 0;                   ///< left out: crowd regions
  int empty = 0;                   ///< left out: width or height not above 0, or not finite
  int outside = 0;                 ///< left out: nothing remains inside the image
  int duplicate = 0;               ///< left out: same class and same four numbers as an earlier one
  int clipped = 0;                 ///< kept, but cut at the image's edge
};

/// Clips to [0, width] x [0, height], drops crowd regions, empty boxes and exact duplicates.
TrainingBoxes training_boxes(std::span<Annotation const> annotations, int width_px, int height_px);

/// All shards of one split. Every shard is opened once with HDF5 (no file locks, so read-only
/// folders and files that others hold locked are fine); its tables are read and checked, the place
/// of the image bytes in the file is noted, and HDF5 is left again. What follows is pread on a
/// plain descriptor.
///
/// Every method but the constructor may be called from any thread.
class ShardSet {
 public:
  /// \throws Error (bad data)  the folder has no complete split of that name; a shard is missing,
  /// belongs to
  ///     another split or packing, is cut short, has another format version or a damaged table. The
  ///     text names the shard and whether it is the length or the checksum that is wrong.
  ShardSet(std::filesystem::path const& folder, std::string const& split);
  ShardSet(ShardSet&&) noexcept;
  ShardSet& operator=(ShardSet&&) noexcept;
  ~ShardSet();

  std::string const& split() const;
  /// Number of images.
  std::int64_t size() const;
  int shard_count() const;
  /// Hex digest of the content: images, labels, categories and their order.
  std::string const& digest() const;
  /// Ascending by id, so that the place is the class index.
  std::vector<Category> const& categories() const;
  /// The manifest and the shard files: what a copy of this split needs.
  std::vector<std::filesystem::path> const& files() const;
  /// First image of shard `shard` (0 .. shard_count); shard_count gives size().
  std::int64_t first_of_shard(int shard) const;

  /// Image `index`, 0 .. size()-1, in the order of the source.
  Record record(std::int64_t index) const;
  std::span<Annotation const> annotations(std::int64_t index) const;
  /// Boxes for training; computed at the call.
  std::vector<TrainingBox> training_boxes(std::int64_t index) const;

  /// The encoded picture, its CRC-32C checked.
  /// \throws Error (bad data)  names shard, record and whether the length or the CRC-32C is wrong
  std::vector<std::byte> read_bytes(std::int64_t index) const;
  /// The same into a buffer that is resized and reused.
  void read_bytes_into(std::int64_t index, std::vector<std::byte>& bytes) const;

 private:
  struct State;
  std::unique_ptr<State const> state_;
};

/// Names of the complete splits in a folder, sorted. \throws Error (bad data)  no such folder
std::vector<std::string> packed_splits(std::filesystem::path const& folder);

/// Reads every byte of a split: length and checksum of each file against the manifest, tables and
/// each image against their own checksums. \return  one line per fault, naming shard, record and
/// whether length or CRC-32C is wrong; empty: all is well \throws Error (bad data)  there is no
/// complete split of that name
std::vector<std::string> verify_split(std::filesystem::path const& folder,
                                      std::string const& split);

}  // namespace yolohpc::data
