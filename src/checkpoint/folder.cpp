#include "folder.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"
#include "yolohpc/checkpoint/format.hpp"

namespace yolohpc::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view name_prefix = "step-";
constexpr std::string_view name_suffix = ".safetensors";
constexpr std::string_view temporary_suffix = ".tmp";
// Nine digits hold the steps of 100 epochs over a data set of 10^8 images; longer numbers are still
// read.
constexpr std::size_t least_digits = 9;

class TestFile {
 public:
  explicit TestFile(fs::path path)
      : path_(std::move(path)),
        descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  TestFile(TestFile const&) = delete;
  TestFile& operator=(TestFile const&) = delete;
  ~TestFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    ::unlink(path_.c_str());
  }
  int descriptor() const { return descriptor_; }

 private:
  fs::path path_;
  int descriptor_;
};

[[noreturn]] void fail_room(fs::path const& folder, char const* call, std::int64_t size_bytes) {
  std::string const reason = std::strerror(errno);
  base::fail(base::ExitCode::failure, "no checkpoint can be written to ", folder.string(), ": ",
             call, " of a test file of ", size_bytes, " bytes: ", reason,
             ". Free space or quota there, raise the file-size limit, or choose another --out.");
}

std::vector<fs::directory_entry> entries_of(fs::path const& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(*it);
  }
  return entries;
}

}  // namespace

fs::path file_name_of(std::int64_t step) {
  auto digits = std::to_string(step);
  if (digits.size() < least_digits) digits.insert(0, least_digits - digits.size(), '0');
  return std::string(name_prefix) + digits + std::string(name_suffix);
}

std::optional<std::int64_t> step_of(fs::path const& path) {
  auto const name = path.filename().string();
  if (!name.starts_with(name_prefix) || !name.ends_with(name_suffix)) return std::nullopt;
  if (name.size() < name_prefix.size() + least_digits + name_suffix.size()) return std::nullopt;
  auto const* const begin = name.data() + name_prefix.size();
  auto const* const end = name.data() + name.size() - name_suffix.size();
  std::int64_t step = 0;
  auto const [stop, error] = std::from_chars(begin, end, step);
  if (error != std::errc() || stop != end || step < 0) return std::nullopt;
  return step;
}

std::vector<FileEntry> list_checkpoints(fs::path const& folder) {
  std::vector<FileEntry> files;
  for (auto const& entry : entries_of(folder)) {
    auto const step = step_of(entry.path());
    if (step) files.push_back({entry.path(), *step});
  }
  std::sort(files.begin(), files.end(),
            [](auto const& a, auto const& b) { return a.step > b.step; });
  return files;
}

void remove_temporaries(fs::path const& folder) {
  for (auto const& entry : entries_of(folder)) {
    auto const name = entry.path().filename().string();
    if (!name.ends_with(temporary_suffix)) continue;
    auto const target = name.substr(0, name.size() - temporary_suffix.size());
    if (step_of(target)) base::remove_stale_temporary(folder / target);
  }
}

void prune(fs::path const& folder, int keep) {
  auto const files = list_checkpoints(folder);
  bool is_best_found = false;
  for (std::size_t i = 0; i < files.size(); ++i) {
    bool const is_best = !is_best_found && peek_quality(files[i].path) == Quality::best;
    is_best_found = is_best_found || is_best;
    if (is_best || i < static_cast<std::size_t>(keep)) continue;
    std::error_code ignored;
    fs::remove(files[i].path, ignored);
  }
}

void check_room(fs::path const& folder, RoomNeeded needed) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) fail_room(folder, "statvfs", needed.file_bytes);
  auto const free_bytes = static_cast<std::int64_t>(info.f_bavail * info.f_frsize);
  YOLOHPC_CHECK(free_bytes >= needed.free_bytes, "the file system of ", folder.string(), " has ",
                free_bytes, " bytes free; the checkpoints of this run need ", needed.free_bytes,
                ". Free space, lower --keep, or choose another --out.");
  TestFile const file(folder / "space-test.tmp");
  if (file.descriptor() < 0) fail_room(folder, "open", needed.file_bytes);
  // fallocate finds quota and file-size limits without writing; not every file system knows it.
  bool const is_refused = ::fallocate(file.descriptor(), 0, 0, needed.file_bytes) != 0 &&
                          errno != EOPNOTSUPP && errno != ENOSYS;
  if (is_refused) fail_room(folder, "fallocate", needed.file_bytes);
  if (::write(file.descriptor(), "x", 1) != 1) fail_room(folder, "write", needed.file_bytes);
  if (::fsync(file.descriptor()) != 0) fail_room(folder, "fsync", needed.file_bytes);
}

}  // namespace yolohpc::checkpoint
