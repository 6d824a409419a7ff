// Records out of a JSON file without building its tree.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>

namespace yolohpc::eval {

/// The fields that are kept; others are passed over.
enum class Field { id, image_id, category_id, bbox, area, iscrowd, score, name };
inline constexpr std::size_t field_count = 8;

/// One object of a list, and where it stands.
class JsonRecord {
 public:
  explicit JsonRecord(std::string file) : file_(std::move(file)) {}

  /// The name of the list; empty when the file is one list.
  std::string const& section() const { return section_; }
  bool has(Field field) const { return value(field).kind != Kind::absent; }

  /// \throws Error (bad data)  the field is missing or something else; names file, record and field
  std::int64_t integer(Field field) const;
  double number(Field field) const;
  std::string const& text(Field field) const;
  std::array<double, 4> box() const;

  /// Throws Error (bad data): the place of this record, then `text`.
  [[noreturn]] void fail(std::string const& text) const;

 private:
  friend class RecordHandler;
  enum class Kind { absent, integer, real, text, list, other };
  struct Value {
    Kind kind = Kind::absent;
    double number = 0;
    std::int64_t integer = 0;
    std::string text;
  };
  Value const& value(Field field) const { return values_[static_cast<std::size_t>(field)]; }
  Value& value(Field field) { return values_[static_cast<std::size_t>(field)]; }
  [[noreturn]] void fail_kind(Field field, char const* wanted) const;
  void begin(std::string const& section, std::size_t number);

  std::string file_;
  std::string section_;
  std::size_t number_ = 0;
  std::array<Value, field_count> values_;
  std::array<double, 4> box_{};
  std::size_t box_entries_ = 0;
  bool box_is_numbers_ = true;
};

/// Calls `take` with every record of the wanted lists, in order. The record is valid during the
/// call.
///
/// \param sections  names of lists inside one object; {""} means that the file is one list
/// \return          which of them were there
/// \throws Error (bad data)  the file cannot be read, is not JSON (says the byte), or holds
/// something
///                           else where a list or a record is wanted
std::set<std::string> read_json_records(std::filesystem::path const& path,
                                        std::set<std::string> const& sections,
                                        std::function<void(JsonRecord const&)> const& take);

}  // namespace yolohpc::eval
