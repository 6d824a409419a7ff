#include <cstdint>

#include "yolohpc/base/crc32c.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/data/shard_set.hpp"

#include "file_descriptor.hpp"
#include "manifest.hpp"
#include "shard_reader.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;
using Faults = std::vector<std::string>;

void verify_records(ShardContent const& content, fs::path const& path, std::string const& words,
                    Faults& faults) {
  FileDescriptor const file = FileDescriptor::open_to_read(path);
  ShardTables const& tables = content.tables;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < tables.image_count(); ++i) {
    bytes.resize(tables.image_offset[i + 1] - tables.image_offset[i]);
    std::size_t const count = file.read_at(content.payload_offset + tables.image_offset[i], bytes);
    std::string const record =
        base::join(words, ", record ", i, " (image id ", tables.image_id[i], "): ");
    if (count != bytes.size()) {
      faults.push_back(base::join(record, "length: the file ends after ", count, " of its ",
                                  bytes.size(), " bytes"));
    } else if (base::crc32c(bytes) != tables.image_crc32c[i]) {
      faults.push_back(base::join(record, "CRC-32C is ", base::crc32c(bytes), ", stored is ",
                                  tables.image_crc32c[i]));
    }
  }
}

void verify_shard(Manifest const& manifest, std::size_t shard, fs::path const& folder,
                  Faults& faults) {
  ManifestShard const& entry = manifest.shards[shard];
  fs::path const path = folder / entry.file;
  std::string const words =
      shard_words(static_cast<int>(shard), static_cast<int>(manifest.shards.size()), path);
  if (!fs::is_regular_file(path)) {
    faults.push_back(words + " is missing");
    return;
  }
  std::uint64_t const size = fs::file_size(path);
  if (size != entry.bytes) {
    faults.push_back(
        base::join(words, " has ", size, " bytes, the manifest says ", entry.bytes, " (length)"));
  } else if (std::uint32_t const crc = file_crc32c(path); crc != entry.crc32c) {
    faults.push_back(
        base::join(words, ": CRC-32C of the file is ", crc, ", the manifest says ", entry.crc32c));
  }
  try {
    verify_records(read_shard(path, words), path, words, faults);
  } catch (base::Error const& error) {
    faults.push_back(error.what());
  }
}

}  // namespace

std::vector<std::string> verify_split(fs::path const& folder, std::string const& split) {
  Manifest const manifest = read_manifest(folder, split);
  Faults faults;
  for (std::size_t shard = 0; shard < manifest.shards.size(); ++shard) {
    verify_shard(manifest, shard, folder, faults);
  }
  if (!faults.empty()) return faults;
  // Each shard is whole; do they belong together?
  try {
    ShardSet const set(folder, split);
  } catch (base::Error const& error) {
    faults.push_back(error.what());
  }
  return faults;
}

}  // namespace yolohpc::data
