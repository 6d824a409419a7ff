// The characters of a JSON file, read in blocks, with the literals NaN and Infinity replaced by
// null.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

namespace yolohpc::data {

/// A forward-only source of characters. Python's json module writes NaN, Infinity and -Infinity,
/// which no JSON parser accepts; as null they reach the place where the value is judged.
class JsonCharacters {
 public:
  /// \throws Error (bad data)  the file cannot be opened
  explicit JsonCharacters(std::filesystem::path const& file);

  bool at_end() const { return place_ == end_ && replacement_ == nullptr; }
  char current() const { return replacement_ != nullptr ? *replacement_ : *place_; }
  void advance();

  /// Offset in the file of the character that is number `count` (from 1) of those handed out, good
  /// for the latest ones.
  std::size_t file_offset(std::size_t count) const { return count + removed_ - added_; }

 private:
  void fill();
  /// Looks for a literal to replace at `place_`.
  void look();

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::filesystem::path path_;
  std::vector<char> buffer_;
  char const* place_ = nullptr;
  char const* end_ = nullptr;
  char const* replacement_ = nullptr;
  bool in_string_ = false;
  bool escaped_ = false;
  std::size_t removed_ = 0;
  std::size_t added_ = 0;
};

/// The pair of iterators that nlohmann's parser wants.
class JsonCharacterIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = char const*;
  using reference = char;

  JsonCharacterIterator() = default;
  explicit JsonCharacterIterator(JsonCharacters& characters) : characters_(&characters) {}

  char operator*() const { return characters_->current(); }
  JsonCharacterIterator& operator++() {
    characters_->advance();
    return *this;
  }
  void operator++(int) { characters_->advance(); }
  bool operator==(JsonCharacterIterator const& other) const { return ended() == other.ended(); }
  bool operator!=(JsonCharacterIterator const& other) const { return !(*this == other); }

 private:
  bool ended() const { return characters_ == nullptr || characters_->at_end(); }

  JsonCharacters* characters_ = nullptr;
};

}  // namespace yolohpc::data
