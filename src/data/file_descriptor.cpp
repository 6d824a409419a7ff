#include "file_descriptor.hpp"

#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "yolohpc/base/crc32c.hpp"
#include "yolohpc/base/error.hpp"

namespace yolohpc::data {
namespace {

constexpr std::size_t block_bytes = std::size_t{4} << 20;

[[noreturn]] void fail_write(std::filesystem::path const& path, char const* call, int error) {
  base::fail(base::ExitCode::failure, "cannot write ", path.string(), ": ", call, ": ",
             std::strerror(error), ". Free space or quota there, or choose another folder.");
}

}  // namespace

FileDescriptor FileDescriptor::open_to_read(std::filesystem::path const& path) {
  int const fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, fd >= 0, "cannot open ", path.string(), ": ",
                   std::strerror(errno), ".");
  return {fd, path};
}

FileDescriptor FileDescriptor::open_for_update(std::filesystem::path const& path) {
  int const fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail_write(path, "open", errno);
  return {fd, path};
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::size_t FileDescriptor::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t const count =
        ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, count >= 0, "cannot read ", path_.string(),
                     ": pread: ", std::strerror(errno), ".");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

void FileDescriptor::write_at(std::uint64_t offset, std::span<std::byte const> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t const count =
        ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_write(path_, "pwrite", count == 0 ? ENOSPC : errno);
    done += static_cast<std::size_t>(count);
  }
}

void FileDescriptor::sync() const {
  if (::fsync(fd_) != 0) fail_write(path_, "fsync", errno);
}

std::uint64_t FileDescriptor::size_bytes() const {
  struct stat info {};
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, ::fstat(fd_, &info) == 0, "cannot read ",
                   path_.string(), ": fstat: ", std::strerror(errno), ".");
  return static_cast<std::uint64_t>(info.st_size);
}

std::uint32_t file_crc32c(std::filesystem::path const& path) {
  FileDescriptor const file = FileDescriptor::open_to_read(path);
  std::vector<std::byte> block(block_bytes);
  std::uint32_t crc = 0;
  for (std::uint64_t offset = 0;;) {
    std::size_t const count = file.read_at(offset, block);
    crc = base::crc32c(std::span(block).first(count), crc);
    offset += count;
    if (count < block.size()) return crc;
  }
}

}  // namespace yolohpc::data
