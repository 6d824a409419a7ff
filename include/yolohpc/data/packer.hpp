// Packing: every image of a label source is checked, then all are written as shards, by any number
// of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "yolohpc/base/error.hpp"
#include "yolohpc/data/label_source.hpp"

namespace yolohpc::data {

/// The one thing packing needs of the ranks of a job.
struct RankGroup {
  int rank = 0;
  int size = 1;
  /// What each rank gave, by rank (size), on every rank. All ranks call it, in the same order.
  std::function<std::vector<std::vector<std::byte>>(std::span<std::byte const>)> all_gather;
};

/// A group of one.
RankGroup lone_rank();

/// How far this rank is.
struct PackProgress {
  char const* phase = "";  ///< "checking images", "writing shards"
  std::int64_t done = 0;   ///< images or shards of this rank
  std::int64_t total = 0;
  double elapsed_s = 0;
};

struct PackSettings {
  std::filesystem::path out;
  std::string split = "train";  ///< letters, digits, '_', '-' and '.', not first
  std::int64_t shard_bytes = std::int64_t{512}
                             << 20;  ///< image bytes in a shard; a larger image is alone
  bool skip_bad = false;             ///< pack what is left when there are faults
  bool overwrite = false;            ///< replace a complete split of the same name
  int threads = 1;                   ///< that decode, on this rank
  /// Checked images kept in memory until they are written, on this rank; the others are read again.
  std::int64_t cache_bytes = std::int64_t{1} << 30;
  std::function<void(PackProgress const&)> on_progress;  ///< about once a second; may be empty
};

struct PackReport {
  std::string split;
  bool packed = false;  ///< false: there were faults and nothing was written
  std::int64_t images = 0;
  std::int64_t boxes = 0;       ///< that remain for training
  std::int64_t crowd = 0;       ///< crowd regions, kept for evaluation
  std::int64_t background = 0;  ///< images without a training box
  int shards = 0;
  std::int64_t bytes = 0;  ///< encoded images
  std::string
      digest;  ///< SHA-256 of the content in hex; the same for any shard size and rank count
  std::vector<PackFault> skipped;
  std::map<std::string, std::int64_t> converted;
};

/// One JSON object: images, boxes, shards, digest, skipped, converted and more.
std::string to_json(PackReport const& report);

/// The file of an image is not there.
class MissingImage : public base::Error {
 public:
  explicit MissingImage(std::string const& text) : Error(text, base::ExitCode::bad_data) {}
};

/// Gives the encoded picture of image `index` of the source. Called from several threads.
/// \throws MissingImage, Error  it cannot be had: a fault of this image
using ImageReader = std::function<std::vector<std::byte>(std::size_t index)>;

/// Reads files below the source's image_root. The source must outlive the reader.
ImageReader file_reader(LabelSource const& source);

/// Calls `read` on rank 0 and hands the result to all ranks.
/// \throws Error  on every rank, what `read` threw on rank 0
LabelSource read_on_root(RankGroup const& group, std::function<LabelSource()> const& read);

/// Checks every image (each is read and decoded once, by the threads of the ranks), collects all
/// faults, then, if there are none or `skip_bad` is set, writes the shards: each rank its own,
/// under temporary names, synced, renamed, the manifest last. The same files for any number of
/// ranks and threads.
///
/// All ranks call it with the same source and settings and get the same report.
/// \throws Error  usage: a setting is out of range, a complete split exists and `overwrite` is not
/// set;
///     bad data: no image is left, an image changes while it is packed; failure: the folder cannot
///     be written. What one rank meets is thrown on all.
PackReport pack(LabelSource const& source, ImageReader const& read_image,
                PackSettings const& settings, RankGroup const& group);

/// One picture in memory with its labels.
struct PackImage {
  std::int64_t id = 0;
  std::string file_name;
  std::vector<std::byte> bytes;  ///< JPEG or PNG
  std::vector<Annotation> annotations;
};

/// Packs pictures that are in memory, in one process: for tests and tools.
/// \param categories  ascending ids
PackReport pack_images(std::vector<Category> const& categories,
                       std::vector<PackImage> const& images, PackSettings const& settings);

}  // namespace yolohpc::data
