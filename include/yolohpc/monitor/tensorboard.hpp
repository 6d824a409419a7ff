// TensorBoard event files with scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace yolohpc::monitor {

/// Tag and value.
using Scalars = std::vector<std::pair<std::string, double>>;

/// One record of an event file: u64 length, masked CRC-32C of the length, payload, masked CRC-32C
/// of the payload, all little-endian. Source: TFRecord format,
/// tensorflow/core/lib/io/record_writer.h.
std::vector<std::byte> record_frame(std::span<std::byte const> payload);
/// rotate right by 15, plus 0xA282EAD8 (same source).
std::uint32_t masked_crc(std::uint32_t crc);
/// The protobuf bytes of tensorflow.Event{wall_time = 1, step = 2, summary = 5} with one
/// simple_value (float) for each scalar, in order.
std::vector<std::byte> scalar_event(double wall_time_s, std::int64_t step, Scalars const& scalars);
/// Event{wall_time, file_version = "brain.Event:2"}, the first record of each file.
std::vector<std::byte> version_event(double wall_time_s);

/// Writes `events.out.tfevents.TIME.HOST` into a folder. A resumed run writes a file of its own;
/// TensorBoard shows all files of a folder as one run, so steps after the resumed one are first cut
/// from older files.
class TensorBoardWriter {
 public:
  struct Settings {
    std::filesystem::path folder = {};
    std::string host = {};
    /// On resume: records of the folder's event files with a larger step are removed. Negative: a
    /// new run.
    std::int64_t resumed_step = -1;
  };
  /// \throws Error  the file cannot be created
  explicit TensorBoardWriter(Settings settings);

  /// Appends the scalars of one step and hands them to the system. \throws Error  the write fails
  void write(std::int64_t step, Scalars const& scalars);
  std::filesystem::path const& file() const { return file_; }

 private:
  void append(std::span<std::byte const> payload);
  std::filesystem::path file_;
};

/// The records (payloads) of an event file, up to the first damaged or torn one.
std::vector<std::vector<std::byte>> read_records(std::filesystem::path const& file);
/// The step of an Event; 0 when it has none.
std::int64_t event_step(std::span<std::byte const> event);

}  // namespace yolohpc::monitor
