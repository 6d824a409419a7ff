#include "yolohpc/data/packer.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <set>
#include <utility>

#include <unistd.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/crc32c.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "file_descriptor.hpp"
#include "image_check.hpp"
#include "manifest.hpp"
#include "pack_plan.hpp"
#include "rank_group.hpp"
#include "shard_format.hpp"
#include "shard_writer.hpp"
#include "worker_threads.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;

bool is_split_name(std::string const& name) {
  bool const begins_well = !name.empty() && name.front() != '.' && name.front() != '-';
  return begins_well && std::all_of(name.begin(), name.end(), [](unsigned char letter) {
           return std::isalnum(letter) != 0 || letter == '_' || letter == '-' || letter == '.';
         });
}

void check_settings(PackSettings const& settings) {
  using base::ExitCode;
  YOLOHPC_CHECK_AS(ExitCode::usage, is_split_name(settings.split), "the split is called \"",
                   settings.split, "\" (letters, digits, '_', '-' and '.' make its file names).");
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.shard_bytes > 0, "a shard has ", settings.shard_bytes,
                   " bytes (needs at least 1).");
  YOLOHPC_CHECK_AS(ExitCode::usage, settings.threads > 0, settings.threads,
                   " threads (at least 1 is needed).");
  YOLOHPC_CHECK_AS(ExitCode::usage, !settings.out.empty(), "no output folder is given.");
}

/// Refuses a folder whose split would be lost.
void check_target(PackSettings const& settings) {
  fs::path const path = manifest_path(settings.out, settings.split);
  if (!fs::exists(path)) return;
  auto const splits = packed_splits(settings.out);
  bool const is_ours = std::find(splits.begin(), splits.end(), settings.split) != splits.end();
  YOLOHPC_CHECK_AS(base::ExitCode::usage, is_ours, path.string(),
                   " exists and is no manifest; packing would replace it. Choose another folder or "
                   "another name for the split.");
  YOLOHPC_CHECK_AS(base::ExitCode::usage, settings.overwrite, "split '", settings.split,
                   "' is already packed in ", settings.out.string(),
                   ". Give --overwrite to replace it, or another folder.");
}

/// One packing run on one rank.
class Packer {
 public:
  Packer(LabelSource const& source, ImageReader const& read_image, PackSettings const& settings,
         RankGroup const& group)
      : source_(source), read_image_(read_image), settings_(settings), group_(group) {}

  PackReport run();

 private:
  std::vector<ImageCheck> check_images();
  ImageCheck check_one(std::size_t image, CheckBuffers& buffers);
  std::vector<ImageCheck> exchange(std::vector<ImageCheck> own);
  void write_shards();
  void write_one(int shard);
  std::vector<std::byte> bytes_of(std::size_t image);
  Manifest gather_manifest();
  void publish();
  void remove_leftovers(Manifest const& manifest) const;
  void remove_temporaries() const;
  fs::path final_path(int shard) const {
    return settings_.out / shard_file_name(settings_.split, shard, plan_.shard_count());
  }
  fs::path temporary_path(int shard) const { return final_path(shard).string() + ".tmp"; }
  void show(char const* phase, std::int64_t done, std::int64_t total) const {
    if (settings_.on_progress) settings_.on_progress({phase, done, total, watch_.elapsed_s()});
  }

  LabelSource const& source_;
  ImageReader const& read_image_;
  PackSettings const& settings_;
  RankGroup const& group_;
  base::Stopwatch watch_;
  std::vector<ImageCheck> checks_;             // (images of the source)
  std::vector<std::vector<std::byte>> cache_;  // (images of the source); empty: read again
  std::atomic<std::int64_t> cached_bytes_{0};
  PackPlan plan_;
  std::pair<std::size_t, std::size_t> own_shards_;
  std::vector<ManifestShard> own_entries_;
};

ImageCheck Packer::check_one(std::size_t image, CheckBuffers& buffers) {
  SourceImage const& listed = source_.images[image];
  if (listed.excluded) return unreadable_image("excluded", "");
  std::vector<std::byte> bytes;
  try {
    bytes = read_image_(image);
  } catch (MissingImage const& error) {
    return unreadable_image("image_missing_file", error.what());
  } catch (base::Error const& error) {
    return unreadable_image("image_unreadable", error.what());
  }
  ImageCheck check = check_image(listed, bytes, buffers);
  auto const size = static_cast<std::int64_t>(bytes.size());
  if (check.is_good() && cached_bytes_.fetch_add(size) + size <= settings_.cache_bytes) {
    cache_[image] = std::move(bytes);
  }
  return check;
}

std::vector<ImageCheck> Packer::check_images() {
  auto const [begin, end] = share_of(source_.images.size(), group_.rank, group_.size);
  std::vector<ImageCheck> own(end - begin);
  run_together(group_, [&, begin = begin, end = end] {
    std::vector<CheckBuffers> buffers(static_cast<std::size_t>(settings_.threads));
    for_each_on_threads(
        settings_.threads, begin, end,
        [&](std::size_t thread, std::size_t image) {
          own[image - begin] = check_one(image, buffers[thread]);
        },
        [&](std::size_t done) {
          show("checking images", static_cast<std::int64_t>(done),
               static_cast<std::int64_t>(end - begin));
        });
  });
  return exchange(std::move(own));
}

std::vector<ImageCheck> Packer::exchange(std::vector<ImageCheck> own) {
  if (group_.size == 1) return own;
  ByteWriter writer;
  for (ImageCheck const& check : own) write_check(writer, check);
  auto const parts = group_.all_gather(writer.bytes());
  std::vector<ImageCheck> all;
  all.reserve(source_.images.size());
  for (int rank = 0; rank < group_.size; ++rank) {
    auto const [first, last] = share_of(source_.images.size(), rank, group_.size);
    ByteReader reader(parts[static_cast<std::size_t>(rank)]);
    for (std::size_t i = first; i < last; ++i) all.push_back(read_check(reader));
  }
  return all;
}

std::vector<std::byte> Packer::bytes_of(std::size_t image) {
  if (!cache_[image].empty()) return std::exchange(cache_[image], {});
  std::vector<std::byte> bytes = read_image_(image);
  YOLOHPC_CHECK_AS(
      base::ExitCode::bad_data, base::crc32c(bytes) == checks_[image].crc32c, "image ",
      source_.images[image].id, " (", source_.images[image].file_name,
      ") has changed since it was checked. Pack again when nobody writes to the folder.");
  return bytes;
}

void Packer::write_one(int shard) {
  std::vector<std::byte> bytes;
  auto const first = plan_.shard_begin[static_cast<std::size_t>(shard)];
  ShardTables const tables = tables_of_shard(source_, checks_, plan_, shard);
  fs::path const path = temporary_path(shard);
  write_shard(path, header_of_shard(source_, plan_, shard), tables, [&](std::size_t index) {
    bytes = bytes_of(plan_.kept[first + index]);
    return std::span<std::byte const>(bytes);
  });
  own_entries_.push_back({.file = final_path(shard).filename().string(),
                          .bytes = fs::file_size(path),
                          .crc32c = file_crc32c(path),
                          .images = static_cast<std::int64_t>(tables.image_count())});
}

void Packer::write_shards() {
  fs::create_directories(settings_.out);
  auto const [begin, end] = own_shards_;
  for (std::size_t shard = begin; shard < end; ++shard) {
    show("writing shards", static_cast<std::int64_t>(shard - begin),
         static_cast<std::int64_t>(end - begin));
    write_one(static_cast<int>(shard));
  }
  show("writing shards", static_cast<std::int64_t>(end - begin),
       static_cast<std::int64_t>(end - begin));
}

Manifest Packer::gather_manifest() {
  ByteWriter writer;
  for (ManifestShard const& entry : own_entries_) {
    writer.put(entry.file);
    writer.put(entry.bytes);
    writer.put(entry.crc32c);
    writer.put(entry.images);
  }
  auto const parts = group_.all_gather(writer.bytes());
  Manifest manifest{.split = settings_.split,
                    .digest = plan_.report.digest,
                    .images = plan_.report.images,
                    .boxes = plan_.report.boxes,
                    .shards = {}};
  for (int rank = 0; rank < group_.size; ++rank) {
    ByteReader reader(parts[static_cast<std::size_t>(rank)]);
    auto const [begin, end] =
        share_of(static_cast<std::size_t>(plan_.shard_count()), rank, group_.size);
    for (std::size_t shard = begin; shard < end; ++shard) {
      ManifestShard entry;
      entry.file = reader.get_text();
      entry.bytes = reader.get<std::uint64_t>();
      entry.crc32c = reader.get<std::uint32_t>();
      entry.images = reader.get<std::int64_t>();
      manifest.shards.push_back(std::move(entry));
    }
  }
  return manifest;
}

/// Shards of an earlier packing with another count, and temporaries of one that was killed.
void Packer::remove_leftovers(Manifest const& manifest) const {
  std::set<std::string> keep;
  for (ManifestShard const& shard : manifest.shards) keep.insert(shard.file);
  for (fs::path const& path : shard_files_in(settings_.out, settings_.split)) {
    if (!keep.contains(path.filename().string())) fs::remove(path);
  }
}

// The order makes a half-done split visible: without a manifest there is no split.
void Packer::publish() {
  Manifest const manifest = gather_manifest();
  fs::path const path = manifest_path(settings_.out, settings_.split);
  run_together(group_, [&] {
    if (group_.rank == 0) fs::remove(path);
  });
  run_together(group_, [&] {
    for (std::size_t shard = own_shards_.first; shard < own_shards_.second; ++shard) {
      fs::rename(temporary_path(static_cast<int>(shard)), final_path(static_cast<int>(shard)));
    }
  });
  run_together(group_, [&] {
    if (group_.rank != 0) return;
    remove_leftovers(manifest);
    write_manifest(settings_.out, manifest);
  });
}

void Packer::remove_temporaries() const {
  for (std::size_t shard = own_shards_.first; shard < own_shards_.second; ++shard) {
    ::unlink(temporary_path(static_cast<int>(shard)).c_str());
  }
}

PackReport Packer::run() {
  run_together(group_, [&] {
    check_settings(settings_);
    if (group_.rank == 0) check_target(settings_);
  });
  cache_.resize(source_.images.size());
  checks_ = check_images();
  plan_ = make_plan(source_, checks_, settings_);
  bool const refused = !plan_.report.skipped.empty() && !settings_.skip_bad;
  if (refused || plan_.kept.empty()) {
    PackReport report;
    report.split = settings_.split;
    report.skipped = plan_.report.skipped;
    report.converted = plan_.report.converted;
    return report;
  }
  own_shards_ = share_of(static_cast<std::size_t>(plan_.shard_count()), group_.rank, group_.size);
  try {
    run_together(group_, [&] { write_shards(); });
    publish();
  } catch (...) {
    remove_temporaries();
    throw;
  }
  plan_.report.packed = true;
  return plan_.report;
}

}  // namespace

ImageReader file_reader(LabelSource const& source) {
  return [&source](std::size_t index) {
    fs::path const path = source.image_root / source.images[index].file_name;
    std::error_code error;
    if (!fs::exists(path, error)) throw MissingImage("missing file: " + path.string());
    // A pipe or a device could keep a reader waiting for ever.
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, fs::is_regular_file(path, error), path.string(),
                     " is not a regular file.");
    return base::read_file(path);
  };
}

PackReport pack(LabelSource const& source, ImageReader const& read_image,
                PackSettings const& settings, RankGroup const& group) {
  return Packer(source, read_image, settings, group).run();
}

PackReport pack_images(std::vector<Category> const& categories,
                       std::vector<PackImage> const& images, PackSettings const& settings) {
  LabelSource source;
  source.categories = categories;
  source.first_annotation.push_back(0);
  for (PackImage const& image : images) {
    source.images.push_back({.id = image.id, .file_name = image.file_name});
    source.annotations.insert(source.annotations.end(), image.annotations.begin(),
                              image.annotations.end());
    source.first_annotation.push_back(source.annotations.size());
  }
  return pack(
      source, [&images](std::size_t index) { return images[index].bytes; }, settings, lone_rank());
}

}  // namespace yolohpc::data
