#include "yolohpc/base/files.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::base {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// A failing close can be the first news of a failed write (NFS, quota), so it is reported.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

std::string reason(int error) {
  return std::strerror(error);
}

fs::path temporary_of(fs::path const& path) {
  return path.string() + ".tmp";
}

[[noreturn]] void fail_write(char const* call, fs::path const& path, std::size_t size_bytes,
                             int error) {
  fail(ExitCode::failure, "cannot write ", path.string(), " (", size_bytes, " bytes): ", call, ": ",
       reason(error), ". Free space or quota on that file system, or choose another folder.");
}

void write_all(Descriptor& file, std::span<std::byte const> bytes, fs::path const& path) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t const count = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_write("write", path, bytes.size(), errno);
    if (count == 0) fail_write("write", path, bytes.size(), ENOSPC);
    done += static_cast<std::size_t>(count);
  }
}

void sync_folder(fs::path const& path, std::size_t size_bytes) {
  fs::path const folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) fail_write("open folder of", path, size_bytes, errno);
  // Some file systems refuse to sync a folder; the rename has been made all the same.
  if (::fsync(directory.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    fail_write("fsync folder of", path, size_bytes, errno);
  }
}

void write_temporary(fs::path const& temporary, std::span<std::byte const> bytes) {
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) fail_write("open", temporary, bytes.size(), errno);
  write_all(file, bytes, temporary);
  if (::fsync(file.get()) != 0) fail_write("fsync", temporary, bytes.size(), errno);
  if (file.close() != 0) fail_write("close", temporary, bytes.size(), errno);
}

}  // namespace

std::vector<std::byte> read_file(fs::path const& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  YOLOHPC_CHECK_AS(ExitCode::bad_data, file.get() >= 0, "cannot open ", path.string(), ": ",
                   reason(errno), ".");
  struct stat info {};
  YOLOHPC_CHECK_AS(ExitCode::bad_data, ::fstat(file.get(), &info) == 0 && !S_ISDIR(info.st_mode),
                   "cannot read ", path.string(), ": it is not a file.");
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t const count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    YOLOHPC_CHECK_AS(ExitCode::bad_data, count >= 0, "cannot read ", path.string(), ": ",
                     reason(errno), ".");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

std::string read_text_file(fs::path const& path) {
  auto const bytes = read_file(path);
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

void write_file_atomically(fs::path const& path, std::span<std::byte const> bytes) {
  fs::path const temporary = temporary_of(path);
  try {
    write_temporary(temporary, bytes);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      fail_write("rename", path, bytes.size(), errno);
    }
  } catch (Error const&) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(path, bytes.size());
}

void write_file_atomically(fs::path const& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

void remove_stale_temporary(fs::path const& path) {
  ::unlink(temporary_of(path).c_str());
}

}  // namespace yolohpc::base
