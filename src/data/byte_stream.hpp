// ByteWriter and ByteReader: values in a row, for messages between ranks and for checksums.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "yolohpc/base/error.hpp"

namespace yolohpc::data {

static_assert(std::endian::native == std::endian::little,
              "shards are little-endian and written from memory as it is");

template <typename T>
concept PlainValue = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class ByteWriter {
 public:
  template <PlainValue T>
  void put(T value) {
    append(&value, sizeof value);
  }
  void put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    append(text.data(), text.size());
  }
  template <PlainValue T>
  void put_all(std::span<T const> values) {
    put(static_cast<std::uint64_t>(values.size()));
    append(values.data(), values.size_bytes());
  }
  std::vector<std::byte> const& bytes() const { return bytes_; }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  void append(void const* data, std::size_t size_bytes) {
    auto const* begin = static_cast<std::byte const*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size_bytes);
  }

  std::vector<std::byte> bytes_;
};

/// Reads back what a ByteWriter wrote. \throws Error  the bytes end too early
class ByteReader {
 public:
  explicit ByteReader(std::span<std::byte const> bytes) : rest_(bytes) {}

  template <PlainValue T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string get_text() {
    auto const bytes = take(get<std::uint64_t>());
    return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
  }
  template <PlainValue T>
  std::vector<T> get_all() {
    auto const count = get<std::uint64_t>();
    YOLOHPC_CHECK(count <= rest_.size(), "a message between ranks is damaged");
    auto const bytes = take(count * sizeof(T));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  std::span<std::byte const> take(std::size_t count) {
    YOLOHPC_CHECK(count <= rest_.size(), "a message between ranks ends ", count - rest_.size(),
                  " bytes too early");
    auto const front = rest_.first(count);
    rest_ = rest_.subspan(count);
    return front;
  }

  std::span<std::byte const> rest_;
};

}  // namespace yolohpc::data
