#include "yolohpc/monitor/tensorboard.hpp"

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <unistd.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/crc32c.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

namespace yolohpc::monitor {
namespace {

using Bytes = std::vector<std::byte>;
namespace fs = std::filesystem;

constexpr std::size_t length_bytes = 8;
constexpr std::size_t crc_bytes = 4;

// Wire types of protobuf's encoding.
enum class Wire : std::uint32_t { varint = 0, fixed64 = 1, length_delimited = 2, fixed32 = 5 };

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
constexpr std::uint32_t event_wall_time = 1;
constexpr std::uint32_t event_step_field = 2;
constexpr std::uint32_t event_file_version = 3;
constexpr std::uint32_t event_summary = 5;
constexpr std::uint32_t summary_value = 1;
constexpr std::uint32_t value_tag = 1;
constexpr std::uint32_t value_simple = 2;

template <typename T>
void append_little_endian(Bytes& bytes, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes.push_back(static_cast<std::byte>(value >> 8 * i & 0xFF));
  }
}

void append_varint(Bytes& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::byte>(value | 0x80));
  bytes.push_back(static_cast<std::byte>(value));
}

void append_key(Bytes& bytes, std::uint32_t field, Wire wire) {
  append_varint(bytes, field << 3 | static_cast<std::uint32_t>(wire));
}

void append_delimited(Bytes& bytes, std::uint32_t field, std::span<std::byte const> content) {
  append_key(bytes, field, Wire::length_delimited);
  append_varint(bytes, content.size());
  bytes.insert(bytes.end(), content.begin(), content.end());
}

void append_text(Bytes& bytes, std::uint32_t field, std::string const& text) {
  append_delimited(bytes, field, std::as_bytes(std::span(text)));
}

void append_wall_time(Bytes& bytes, double wall_time_s) {
  append_key(bytes, event_wall_time, Wire::fixed64);
  append_little_endian(bytes, std::bit_cast<std::uint64_t>(wall_time_s));
}

template <typename T>
T little_endian(std::byte const* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<T>(std::to_integer<std::uint8_t>(at[i])) << 8 * i;
  }
  return value;
}

bool is_intact(std::byte const* content, std::size_t size_bytes) {
  return masked_crc(base::crc32c(content, size_bytes)) ==
         little_endian<std::uint32_t>(content + size_bytes);
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Rewrites an older event file without the steps that are done again. Files without any stay
// untouched.
void cut_file(fs::path const& file, std::int64_t last_step) {
  Bytes kept;
  bool is_cut = false;
  for (auto const& record : read_records(file)) {
    if (event_step(record) > last_step) {
      is_cut = true;
      continue;
    }
    auto const frame = record_frame(record);
    kept.insert(kept.end(), frame.begin(), frame.end());
  }
  if (is_cut) base::write_file_atomically(file, kept);
}

void cut_folder(fs::path const& folder, std::int64_t last_step) {
  for (auto const& entry : fs::directory_iterator(folder)) {
    auto const name = entry.path().filename().string();
    if (name.find("tfevents") != name.npos && !name.ends_with(".tmp")) {
      cut_file(entry.path(), last_step);
    }
  }
}

// The end of the next varint, and its value.
std::uint64_t read_varint(std::span<std::byte const> bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; at < bytes.size() && shift < 64; shift += 7) {
    auto const byte = std::to_integer<std::uint64_t>(bytes[at++]);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

void skip_field(std::span<std::byte const> bytes, Wire wire, std::size_t& at) {
  if (wire == Wire::varint) read_varint(bytes, at);
  if (wire == Wire::fixed64) at += 8;
  if (wire == Wire::fixed32) at += 4;
  if (wire == Wire::length_delimited) {
    auto const size_bytes = read_varint(bytes, at);
    at = size_bytes > bytes.size() - at ? bytes.size() : at + size_bytes;
  }
}

}  // namespace

std::uint32_t masked_crc(std::uint32_t crc) {
  constexpr std::uint32_t mask_delta = 0xA282EAD8;
  return std::rotr(crc, 15) + mask_delta;
}

Bytes record_frame(std::span<std::byte const> payload) {
  Bytes frame;
  frame.reserve(length_bytes + payload.size() + 2 * crc_bytes);
  append_little_endian(frame, static_cast<std::uint64_t>(payload.size()));
  append_little_endian(frame, masked_crc(base::crc32c(frame)));
  frame.insert(frame.end(), payload.begin(), payload.end());
  append_little_endian(frame, masked_crc(base::crc32c(payload)));
  return frame;
}

Bytes scalar_event(double wall_time_s, std::int64_t step, Scalars const& scalars) {
  Bytes summary;
  for (auto const& [tag, number] : scalars) {
    Bytes value;
    append_text(value, value_tag, tag);
    append_key(value, value_simple, Wire::fixed32);
    append_little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    append_delimited(summary, summary_value, value);
  }
  Bytes event;
  append_wall_time(event, wall_time_s);
  append_key(event, event_step_field, Wire::varint);
  append_varint(event, static_cast<std::uint64_t>(step));
  append_delimited(event, event_summary, summary);
  return event;
}

Bytes version_event(double wall_time_s) {
  Bytes event;
  append_wall_time(event, wall_time_s);
  append_text(event, event_file_version, "brain.Event:2");
  return event;
}

std::int64_t event_step(std::span<std::byte const> event) {
  std::size_t at = 0;
  while (at < event.size()) {
    auto const key = read_varint(event, at);
    auto const wire = static_cast<Wire>(key & 7);
    bool const is_step = key >> 3 == event_step_field && wire == Wire::varint;
    if (is_step) return static_cast<std::int64_t>(read_varint(event, at));
    skip_field(event, wire, at);
  }
  return 0;
}

std::vector<Bytes> read_records(fs::path const& file) {
  auto const bytes = base::read_file(file);
  std::vector<Bytes> records;
  std::size_t at = 0;
  while (bytes.size() - at >= length_bytes + 2 * crc_bytes && is_intact(&bytes[at], length_bytes)) {
    auto const size = little_endian<std::uint64_t>(&bytes[at]);
    auto const begin = at + length_bytes + crc_bytes;
    if (size > bytes.size() - begin - crc_bytes || !is_intact(bytes.data() + begin, size)) break;
    records.emplace_back(bytes.data() + begin, bytes.data() + begin + size);
    at = begin + size + crc_bytes;
  }
  return records;
}

TensorBoardWriter::TensorBoardWriter(Settings settings) {
  if (settings.resumed_step >= 0) cut_folder(settings.folder, settings.resumed_step);
  double const now_s = base::wall_clock_s();
  auto const prefix = base::join("events.out.tfevents.", static_cast<std::int64_t>(now_s), ".",
                                 settings.host.empty() ? "localhost" : settings.host);
  // A run that resumes within a second of its start takes another name.
  file_ = settings.folder / prefix;
  for (int i = 1; fs::exists(file_); ++i) file_ = settings.folder / base::join(prefix, ".", i);
  append(version_event(now_s));
}

void TensorBoardWriter::write(std::int64_t step, Scalars const& scalars) {
  append(scalar_event(base::wall_clock_s(), step, scalars));
}

void TensorBoardWriter::append(std::span<std::byte const> payload) {
  auto const frame = record_frame(payload);
  std::unique_ptr<std::FILE, Close> const file(std::fopen(file_.c_str(), "abe"));
  bool const is_written = file != nullptr &&
                          std::fwrite(frame.data(), 1, frame.size(), file.get()) == frame.size() &&
                          std::fflush(file.get()) == 0;
  YOLOHPC_CHECK(is_written, "cannot append ", frame.size(), " bytes to ", file_.string(), ": ",
                std::strerror(errno), ". Check free space and quota of that file system.");
}

}  // namespace yolohpc::monitor
