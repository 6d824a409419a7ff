#include "manifest.hpp"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"
#include "yolohpc/data/shard_set.hpp"

#include "shard_format.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view manifest_format = "yolohpc-split";
/// A manifest has some hundred bytes a shard; other JSON files in the folder may have gigabytes.
constexpr std::uintmax_t max_manifest_bytes = std::uintmax_t{64} << 20;

bool is_manifest(fs::path const& path) {
  std::error_code error;
  if (path.extension() != ".json" || !fs::is_regular_file(path, error)) return false;
  if (fs::file_size(path, error) > max_manifest_bytes) return false;
  json const content = json::parse(base::read_text_file(path), nullptr, false);
  return content.is_object() && content.value("format", json()) == manifest_format;
}

std::string listed(std::vector<std::string> const& names) {
  std::string text;
  for (std::string const& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void fail_missing(fs::path const& folder, std::string const& split) {
  auto const strays = shard_files_in(folder, split);
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, strays.empty(), folder.string(), " holds ",
                   strays.size(), " shard files of split '", split, "' but no ",
                   manifest_path(folder, split).filename().string(),
                   ": packing did not finish, or the file was not copied. Pack again.");
  auto const others = packed_splits(folder);
  base::fail(base::ExitCode::bad_data, "no split '", split, "' in ", folder.string(), " (",
             others.empty() ? "it holds no packed split" : "there are: " + listed(others),
             "). Give the folder that yolohpc-pack wrote and the name it was packed under.");
}

}  // namespace

fs::path manifest_path(fs::path const& folder, std::string const& split) {
  return folder / (split + ".json");
}

void write_manifest(fs::path const& folder, Manifest const& manifest) {
  nlohmann::ordered_json content{
      {"format", manifest_format}, {"format_version", shard_format_version},
      {"split", manifest.split},   {"digest", manifest.digest},
      {"images", manifest.images}, {"boxes", manifest.boxes}};
  auto& shards = content["shards"] = nlohmann::ordered_json::array();
  for (ManifestShard const& shard : manifest.shards) {
    shards.push_back({{"file", shard.file},
                      {"bytes", shard.bytes},
                      {"crc32c", shard.crc32c},
                      {"images", shard.images}});
  }
  base::write_file_atomically(manifest_path(folder, manifest.split), content.dump(1) + "\n");
}

Manifest read_manifest(fs::path const& folder, std::string const& split) {
  fs::path const path = manifest_path(folder, split);
  if (!fs::exists(path)) fail_missing(folder, split);
  try {
    json const content = json::parse(base::read_text_file(path));
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, content.at("format") == manifest_format,
                     path.string(), " is not the manifest of a packed split.");
    std::int64_t const version = content.at("format_version");
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, version == shard_format_version, path.string(),
                     " has format version ", version, ", this program reads version ",
                     shard_format_version,
                     ". Pack the data again with this version of the program.");
    Manifest manifest{.split = content.at("split"),
                      .digest = content.at("digest"),
                      .images = content.at("images"),
                      .boxes = content.at("boxes"),
                      .shards = {}};
    for (json const& shard : content.at("shards")) {
      manifest.shards.push_back({.file = shard.at("file"),
                                 .bytes = shard.at("bytes"),
                                 .crc32c = shard.at("crc32c"),
                                 .images = shard.at("images")});
    }
    return manifest;
  } catch (json::exception const& error) {
    base::fail(base::ExitCode::bad_data, path.string(), " is damaged: ", error.what(),
               ". Copy it again or pack the split again.");
  }
}

std::vector<std::string> packed_splits(fs::path const& folder) {
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, fs::is_directory(folder), folder.string(),
                   " is not a folder. Give the folder that yolohpc-pack wrote.");
  std::vector<std::string> names;
  for (auto const& entry : fs::directory_iterator(folder)) {
    if (is_manifest(entry.path())) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<fs::path> shard_files_in(fs::path const& folder, std::string const& split) {
  constexpr std::size_t tail_length = std::string_view("-00000-of-00016.h5").size();
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (auto const& entry : fs::directory_iterator(folder)) {
    std::string const name = entry.path().filename().string();
    std::string_view const tail =
        std::string_view(name).substr(std::min(name.size(), split.size()));
    bool const is_shard = name.starts_with(split + "-") && tail.size() == tail_length &&
                          tail.find("-of-") == 6 && tail.ends_with(".h5");
    if (is_shard) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace yolohpc::data
