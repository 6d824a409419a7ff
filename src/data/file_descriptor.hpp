// FileDescriptor: a plain file, read and written at given places from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

namespace yolohpc::data {

class FileDescriptor {
 public:
  /// \throws Error (bad data)
  static FileDescriptor open_to_read(std::filesystem::path const& path);
  /// An existing file, for write_at. \throws Error
  static FileDescriptor open_for_update(std::filesystem::path const& path);

  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor();

  /// Bytes read: fewer than asked for at the end of the file only. \throws Error (bad data)
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// \throws Error  names the file and the reason
  void write_at(std::uint64_t offset, std::span<std::byte const> bytes) const;
  void sync() const;
  std::uint64_t size_bytes() const;

 private:
  FileDescriptor(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}

  int fd_;
  std::filesystem::path path_;
};

/// CRC-32C of a whole file, read in blocks. \throws Error (bad data)
std::uint32_t file_crc32c(std::filesystem::path const& path);

}  // namespace yolohpc::data
