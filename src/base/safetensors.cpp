#include "yolohpc/base/safetensors.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

namespace yolohpc::base {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t alignment_bytes = 8;
// The limit of the reference reader: a longer header is taken for an attack or a foreign file.
constexpr std::uint64_t max_header_bytes = 100'000'000;

struct TypeName {
  at::ScalarType type;
  char const* name;
};
constexpr TypeName type_names[] = {
    {at::kFloat, "F32"}, {at::kDouble, "F64"}, {at::kHalf, "F16"},  {at::kBFloat16, "BF16"},
    {at::kLong, "I64"},  {at::kInt, "I32"},    {at::kShort, "I16"}, {at::kChar, "I8"},
    {at::kByte, "U8"},   {at::kBool, "BOOL"},
};

char const* name_of(at::ScalarType type, std::string const& tensor) {
  for (auto const& entry : type_names) {
    if (entry.type == type) return entry.name;
  }
  fail(ExitCode::failure, "tensor ", tensor, " has type ", at::toString(type),
       ", which safetensors cannot hold. Convert it first.");
}

at::ScalarType type_of(std::string const& name, std::string const& tensor,
                       std::string const& origin) {
  for (auto const& entry : type_names) {
    if (name == entry.name) return entry.type;
  }
  fail(ExitCode::bad_data, origin, ": tensor ", tensor, " has the unknown type '", name, "'.");
}

std::uint64_t bytes_of(at::Tensor const& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
}

std::uint64_t aligned(std::uint64_t size) {
  return (size + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

struct Slot {
  std::string name;
  std::uint64_t begin;
  std::uint64_t end;
};

// Every byte behind the header belongs to exactly one tensor, as the format demands.
void check_cover(std::vector<Slot> slots, std::uint64_t data_bytes, std::string const& origin) {
  std::sort(slots.begin(), slots.end(), [](Slot const& a, Slot const& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t at = 0;
  for (auto const& slot : slots) {
    YOLOHPC_CHECK_AS(ExitCode::bad_data, slot.begin == at && slot.end >= slot.begin, origin,
                     ": tensor ", slot.name, " claims bytes ", slot.begin, " to ", slot.end,
                     ", but the data before it end at ", at, " (header damaged).");
    at = slot.end;
  }
  YOLOHPC_CHECK_AS(ExitCode::bad_data, at == data_bytes, origin, ": the header describes ", at,
                   " bytes of data, the file holds ", data_bytes,
                   at > data_bytes ? " (file cut short)." : " (bytes appended).");
}

at::Tensor tensor_from(Json const& entry, std::span<std::byte const> data, Slot const& slot,
                       std::string const& origin) {
  auto const type = type_of(entry.at("dtype").get<std::string>(), slot.name, origin);
  auto const shape = entry.at("shape").get<std::vector<std::int64_t>>();
  std::uint64_t bytes = c10::elementSize(type);
  for (auto const extent : shape) {
    YOLOHPC_CHECK_AS(ExitCode::bad_data, extent >= 0, origin, ": tensor ", slot.name,
                     " has the extent ", extent, ".");
    bytes = extent != 0 && bytes > UINT64_MAX / static_cast<std::uint64_t>(extent)
                ? UINT64_MAX
                : bytes * static_cast<std::uint64_t>(extent);
  }
  YOLOHPC_CHECK_AS(ExitCode::bad_data, bytes == slot.end - slot.begin, origin, ": tensor ",
                   slot.name, " needs ", bytes, " bytes for its shape, but has ",
                   slot.end - slot.begin, ".");
  auto tensor = at::empty(shape, at::TensorOptions().dtype(type));
  if (bytes > 0) std::memcpy(tensor.data_ptr(), data.data() + slot.begin, bytes);
  return tensor;
}

Safetensors parse_checked(std::span<std::byte const> bytes, std::string const& origin) {
  YOLOHPC_CHECK_AS(ExitCode::bad_data, bytes.size() >= length_bytes, origin, " has ", bytes.size(),
                   " bytes; a safetensors file has at least ", length_bytes, " (file cut short).");
  std::uint64_t header_bytes;
  std::memcpy(&header_bytes, bytes.data(), length_bytes);
  YOLOHPC_CHECK_AS(ExitCode::bad_data,
                   header_bytes <= max_header_bytes && header_bytes <= bytes.size() - length_bytes,
                   origin, " announces a header of ", header_bytes, " bytes, but has ",
                   bytes.size() - length_bytes,
                   " behind the length (not a safetensors file, or cut short).");
  auto const* text = reinterpret_cast<char const*>(bytes.data()) + length_bytes;
  auto const header = Json::parse(text, text + header_bytes);
  auto const data = bytes.subspan(length_bytes + header_bytes);
  Safetensors content;
  std::vector<Slot> slots;
  for (auto const& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    auto const& offsets = entry.at("data_offsets");
    slots.push_back({name, offsets.at(0).get<std::uint64_t>(), offsets.at(1).get<std::uint64_t>()});
  }
  check_cover(slots, data.size(), origin);
  if (header.contains("__metadata__")) {
    content.metadata = header["__metadata__"].get<std::map<std::string, std::string>>();
  }
  for (auto const& slot : slots) {
    content.tensors.push_back({slot.name, tensor_from(header[slot.name], data, slot, origin)});
  }
  return content;
}

}  // namespace

at::Tensor find_tensor(NamedTensors const& tensors, std::string const& name) {
  for (auto const& entry : tensors) {
    if (entry.name == name) return entry.tensor;
  }
  return {};
}

std::vector<std::byte> serialize(Safetensors const& content) {
  Json header = Json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  std::uint64_t at = 0;
  std::set<std::string> seen;
  for (auto const& [name, tensor] : content.tensors) {
    YOLOHPC_CHECK(seen.insert(name).second, "tensor ", name, " is given twice.");
    std::uint64_t const size = bytes_of(tensor);
    header[name] = {{"dtype", name_of(tensor.scalar_type(), name)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {at, at + size}}};
    at += size;
  }
  std::string text = header.dump();
  // Spaces behind the JSON are part of the format: they align the data.
  text.resize(aligned(text.size()), ' ');
  std::vector<std::byte> bytes(length_bytes + text.size() + at);
  std::uint64_t const header_bytes = text.size();
  std::memcpy(bytes.data(), &header_bytes, length_bytes);
  std::memcpy(bytes.data() + length_bytes, text.data(), text.size());
  std::byte* to = bytes.data() + length_bytes + text.size();
  for (auto const& entry : content.tensors) {
    auto const flat = entry.tensor.detach().cpu().contiguous();
    if (flat.numel() > 0) std::memcpy(to, flat.data_ptr(), bytes_of(flat));
    to += bytes_of(flat);
  }
  return bytes;
}

Safetensors parse_safetensors(std::span<std::byte const> bytes, std::string const& origin) {
  try {
    return parse_checked(bytes, origin);
  } catch (Json::exception const& error) {
    fail(ExitCode::bad_data, origin, ": the safetensors header is damaged (", error.what(), ").");
  }
}

Safetensors read_safetensors(std::string const& path) {
  return parse_safetensors(read_file(path), path);
}

}  // namespace yolohpc::base
