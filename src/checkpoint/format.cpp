#include "yolohpc/checkpoint/format.hpp"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "yolohpc/base/crc32c.hpp"
#include "yolohpc/base/error.hpp"

namespace yolohpc::checkpoint {
namespace {

using Json = nlohmann::ordered_json;
using Metadata = std::map<std::string, std::string>;

constexpr auto bad_data = base::ExitCode::bad_data;
char const* const own_prefix = "checkpoint.";
char const* const epoch_key = "checkpoint.epoch";
char const* const step_key = "checkpoint.step";
char const* const best_key = "checkpoint.best";
char const* const checksums_key = "checkpoint.crc32c";
char const* const header_checksum_key = "checkpoint.header_crc32c";

std::string hex(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

std::string checksum_of(at::Tensor const& tensor) {
  return hex(base::crc32c(tensor.const_data_ptr(), tensor.nbytes()));
}

// Everything that the header says, in a form that does not depend on how JSON is spelled.
std::string header_checksum(base::Safetensors const& content) {
  std::ostringstream text;
  for (auto const& [key, value] : content.metadata) {
    if (key != header_checksum_key) text << key.size() << ' ' << key << ' ' << value << '\n';
  }
  for (auto const& entry : content.tensors) {
    text << entry.name.size() << ' ' << entry.name << ' ' << entry.tensor.scalar_type() << ' '
         << entry.tensor.sizes() << '\n';
  }
  auto const bytes = text.str();
  return hex(base::crc32c(bytes.data(), bytes.size()));
}

void make_row_major(base::NamedTensors& tensors) {
  for (auto& entry : tensors) entry.tensor = entry.tensor.cpu().contiguous();
}

void refuse_own_keys(Metadata const& metadata) {
  for (auto const& [key, value] : metadata) {
    YOLOHPC_CHECK(!key.starts_with(own_prefix), "the metadata key ", key, " (value ", value,
                  ") belongs to the checkpoint format. Call it otherwise.");
  }
}

std::string take(Metadata& metadata, char const* key, std::string const& origin) {
  auto const found = metadata.find(key);
  YOLOHPC_CHECK_AS(bad_data, found != metadata.end(), origin, " has no entry ", key,
                   " in its header (it is not a checkpoint of this program; weights to start from "
                   "are given with --weights).");
  auto const value = found->second;
  metadata.erase(found);
  return value;
}

std::int64_t take_number(Metadata& metadata, char const* key, std::string const& origin) {
  auto const text = take(metadata, key, origin);
  std::int64_t value = 0;
  auto const end = text.data() + text.size();
  YOLOHPC_CHECK_AS(bad_data, std::from_chars(text.data(), end, value).ptr == end && !text.empty(),
                   origin, ": the header entry ", key, " is '", text, "', no whole number.");
  return value;
}

void check_header(base::Safetensors const& content, std::string const& origin) {
  auto metadata = content.metadata;
  auto const expected = take(metadata, header_checksum_key, origin);
  auto const found = header_checksum(content);
  YOLOHPC_CHECK_AS(bad_data, found == expected, origin, ": the header has the checksum ", found,
                   ", written was ", expected, " (damaged header).");
}

void check_tensors(base::Safetensors const& content, std::string const& checksums,
                   std::string const& origin) {
  auto const expected = Json::parse(checksums);
  YOLOHPC_CHECK_AS(bad_data, expected.size() == content.tensors.size(), origin, " has ",
                   content.tensors.size(), " tensors, but checksums of ", expected.size(),
                   " (damaged header).");
  for (auto const& entry : content.tensors) {
    auto const found = checksum_of(entry.tensor);
    YOLOHPC_CHECK_AS(bad_data, expected.contains(entry.name), origin, ": tensor ", entry.name,
                     " has no checksum (damaged header).");
    auto const written = expected.at(entry.name).get<std::string>();
    YOLOHPC_CHECK_AS(bad_data, found == written, origin, ": tensor ", entry.name,
                     " has the checksum ", found, ", written was ", written,
                     " (damaged data). Use an older checkpoint.");
  }
}

}  // namespace

std::vector<std::byte> encode(base::Safetensors content, Position position, Quality quality) {
  refuse_own_keys(content.metadata);
  make_row_major(content.tensors);
  auto checksums = Json::object();
  for (auto const& entry : content.tensors) checksums[entry.name] = checksum_of(entry.tensor);
  content.metadata[epoch_key] = std::to_string(position.epoch);
  content.metadata[step_key] = std::to_string(position.step);
  content.metadata[best_key] = quality == Quality::best ? "true" : "false";
  content.metadata[checksums_key] = checksums.dump();
  content.metadata[header_checksum_key] = header_checksum(content);
  return base::serialize(content);
}

Decoded decode(std::span<std::byte const> bytes, std::string const& origin) {
  Decoded decoded;
  decoded.content = base::parse_safetensors(bytes, origin);
  check_header(decoded.content, origin);
  auto& metadata = decoded.content.metadata;
  check_tensors(decoded.content, take(metadata, checksums_key, origin), origin);
  decoded.position.epoch = take_number(metadata, epoch_key, origin);
  decoded.position.step = take_number(metadata, step_key, origin);
  decoded.quality = take(metadata, best_key, origin) == "true" ? Quality::best : Quality::ordinary;
  metadata.erase(header_checksum_key);
  return decoded;
}

Quality peek_quality(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t header_bytes = 0;
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
  std::error_code error;
  auto const file_bytes = std::filesystem::file_size(path, error);
  if (!file || error || header_bytes > file_bytes) return Quality::ordinary;
  std::string text(header_bytes, ' ');
  file.read(text.data(), static_cast<std::streamsize>(header_bytes));
  auto const header = Json::parse(text, nullptr, false);
  if (!header.is_object() || !header.contains("__metadata__")) return Quality::ordinary;
  auto const& metadata = header["__metadata__"];
  bool const is_best = metadata.is_object() && metadata.value(best_key, "") == "true";
  return is_best ? Quality::best : Quality::ordinary;
}

}  // namespace yolohpc::checkpoint
