// Bytes that travel between ranks: numbers and arrays of them, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "yolohpc/base/error.hpp"

namespace yolohpc::eval {

class ByteWriter {
 public:
  template <typename T>
  void array(std::span<T const> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto const count = static_cast<std::uint64_t>(values.size());
    append(&count, sizeof count);
    append(values.data(), values.size_bytes());
  }
  template <typename T>
  void number(T const& value) {
    array(std::span<T const>(&value, 1));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(void const* data, std::size_t size) {
    auto const* const first = static_cast<std::byte const*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<std::byte const> bytes) : rest_(bytes) {}

  template <typename T>
  std::vector<T> array() {
    std::uint64_t count = 0;
    take(&count, sizeof count);
    YOLOHPC_CHECK(count <= rest_.size() / sizeof(T), "a rank sent ", rest_.size(), " bytes where ",
                  count, " entries of ", sizeof(T),
                  " bytes were announced. All ranks must run the same program.");
    std::vector<T> values(count);
    take(values.data(), count * sizeof(T));
    return values;
  }
  template <typename T>
  T number() {
    auto const values = array<T>();
    YOLOHPC_CHECK(values.size() == 1, "a rank sent ", values.size(),
                  " numbers where one was expected. All ranks must run the same program.");
    return values.front();
  }
  /// Call it after the last entry. \throws Error  bytes are left
  void expect_end() const {
    YOLOHPC_CHECK(rest_.empty(), "a rank sent ", rest_.size(),
                  " bytes too many. All ranks must run the same program.");
  }

 private:
  void take(void* to, std::size_t size) {
    YOLOHPC_CHECK(size <= rest_.size(), "a rank sent ", rest_.size(), " bytes where at least ",
                  size, " were expected. All ranks must run the same program.");
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  std::span<std::byte const> rest_;
};

}  // namespace yolohpc::eval
