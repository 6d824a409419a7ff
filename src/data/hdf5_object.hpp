// HDF5 identifiers that close themselves, checked calls, and the one lock around every use of the
// library.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include <hdf5.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::data {

/// Holds the lock of the library while alive and keeps HDF5 from printing its error stack. The
/// library is not safe with several threads unless built so, and then takes one lock itself.
class Hdf5Session {
 public:
  Hdf5Session();

 private:
  std::lock_guard<std::mutex> guard_;
};

/// The texts of HDF5's error stack, innermost first, on one line. Needs the session.
std::string hdf5_error_text();

/// \throws Error  `result` is negative: names the call and HDF5's own text
template <typename Result>
Result hdf5_check(Result result, char const* call, std::string const& origin,
                  base::ExitCode code = base::ExitCode::failure) {
  if (result < 0) base::fail(code, origin, ": ", call, ": ", hdf5_error_text());
  return result;
}

/// An identifier with the call that gives it back.
class Hdf5Object {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Object(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Object(Hdf5Object&& other) noexcept
      : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Object& operator=(Hdf5Object&&) = delete;
  ~Hdf5Object() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  /// Closes at once; negative when that fails (a file's last data may be written by it).
  herr_t close() { return close_(std::exchange(id_, -1)); }

 private:
  hid_t id_;
  Close close_;
};

/// The type in the file: little-endian, so that a shard has the same bytes everywhere.
template <typename T>
hid_t hdf5_file_type();
/// The type in memory.
template <typename T>
hid_t hdf5_memory_type();

}  // namespace yolohpc::data
