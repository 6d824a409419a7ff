#include "json_records.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"

namespace yolohpc::eval {
namespace {

using base::ExitCode;
using Json = nlohmann::json;

constexpr std::string_view field_names[field_count] = {"id",   "image_id", "category_id", "bbox",
                                                       "area", "iscrowd",  "score",       "name"};

std::string_view name_of(Field field) {
  return field_names[static_cast<std::size_t>(field)];
}

std::optional<Field> field_called(std::string const& name) {
  for (std::size_t i = 0; i < field_count; ++i) {
    if (name == field_names[i]) return static_cast<Field>(i);
  }
  return {};
}

}  // namespace

void JsonRecord::fail(std::string const& text) const {
  base::fail(ExitCode::bad_data, file_, ": ", section_, section_.empty() ? "" : " ", "entry ",
             number_, " (counted from 0) ", text);
}

void JsonRecord::fail_kind(Field field, char const* wanted) const {
  if (!has(field)) fail(base::join("has no \"", name_of(field), "\" (", wanted, " is needed)."));
  fail(base::join(
      "has a \"", name_of(field), "\" that is not ", wanted,
      value(field).kind == Kind::text ? ": it is the text '" + value(field).text + "'." : "."));
}

std::int64_t JsonRecord::integer(Field field) const {
  auto const& found = value(field);
  if (found.kind == Kind::integer) return found.integer;
  // Programs without integers write 3.0; beyond 2^53 a double no longer tells ids apart.
  constexpr double exact_limit = 9007199254740992.0;
  bool const is_whole = found.kind == Kind::real && std::nearbyint(found.number) == found.number &&
                        std::abs(found.number) < exact_limit;
  if (!is_whole) fail_kind(field, "a whole number");
  return static_cast<std::int64_t>(found.number);
}

double JsonRecord::number(Field field) const {
  auto const& found = value(field);
  if (found.kind != Kind::integer && found.kind != Kind::real) fail_kind(field, "a number");
  return found.number;
}

std::string const& JsonRecord::text(Field field) const {
  if (value(field).kind != Kind::text) fail_kind(field, "a text");
  return value(field).text;
}

std::array<double, 4> JsonRecord::box() const {
  if (value(Field::bbox).kind != Kind::list) fail_kind(Field::bbox, "a list of 4 numbers");
  if (box_entries_ != 4 || !box_is_numbers_) {
    fail(base::join("has a \"bbox\" with ", box_entries_, " entries",
                    box_is_numbers_ ? "" : ", not all of them numbers",
                    " (x, y, width, height are needed)."));
  }
  return box_;
}

void JsonRecord::begin(std::string const& section, std::size_t number) {
  section_ = section;
  number_ = number;
  for (auto& entry : values_) entry.kind = Kind::absent;
  box_entries_ = 0;
  box_is_numbers_ = true;
}

/// Receives the events of the parser and keeps no more than the record at hand.
class RecordHandler : public nlohmann::json_sax<Json> {
 public:
  using Take = std::function<void(JsonRecord const&)>;
  RecordHandler(std::string const& file, std::set<std::string> const& wanted, Take const& take)
      : file_(file),
        wanted_(wanted),
        take_(take),
        list_depth_(wanted.contains("") ? 1 : 2),
        record_(file) {}

  std::set<std::string> const& seen() const { return seen_; }

  bool null() override { return other_scalar(); }
  bool boolean(bool value) override { return number(value, value); }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value), value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    bool const fits = value <= static_cast<number_unsigned_t>(INT64_MAX);
    return number(static_cast<double>(value),
                  fits ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt);
  }
  bool number_float(number_float_t value, string_t const&) override { return number(value, {}); }
  bool string(string_t& value) override {
    if (!at_field()) return other_scalar();
    slot().kind = JsonRecord::Kind::text;
    slot().text = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return other_scalar(); }

  bool start_object(std::size_t) override {
    if (depth_ == 0) check_top(list_depth_ == 2);
    if (in_list_ && depth_ == list_depth_) {
      record_.begin(section_, count_++);
      in_record_ = true;
    } else {
      something_else();
    }
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ == list_depth_ && in_record_) {
      take_(record_);
      in_record_ = false;
    }
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1 && list_depth_ == 2) section_ = name;
    if (in_record_ && depth_ == list_depth_ + 1) field_ = field_called(name);
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) check_top(list_depth_ == 1);
    if (depth_ + 1 == list_depth_ && wanted_.contains(section_)) {
      seen_.insert(section_);
      in_list_ = true;
      count_ = 0;
    } else if (at_field()) {
      slot().kind = JsonRecord::Kind::list;
    } else {
      something_else();
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (--depth_ + 1 == list_depth_) in_list_ = false;
    return true;
  }
  bool parse_error(std::size_t position, std::string const& last_token,
                   nlohmann::detail::exception const& error) override {
    base::fail(ExitCode::bad_data, file_, " is not JSON: at byte ", position, ", near '",
               last_token, "': ", error.what(), ". Is the file cut short?");
  }

 private:
  bool at_field() const { return in_record_ && field_ && depth_ == list_depth_ + 1; }
  bool in_box() const {
    return in_record_ && field_ == Field::bbox && depth_ == list_depth_ + 2 &&
           record_.value(Field::bbox).kind == JsonRecord::Kind::list;
  }
  JsonRecord::Value& slot() { return record_.value(*field_); }

  bool number(double value, std::optional<std::int64_t> integer) {
    if (at_field()) {
      slot().kind = integer ? JsonRecord::Kind::integer : JsonRecord::Kind::real;
      slot().number = value;
      slot().integer = integer.value_or(0);
      return true;
    }
    if (!in_box()) return other_scalar();
    if (record_.box_entries_ < record_.box_.size()) record_.box_[record_.box_entries_] = value;
    ++record_.box_entries_;
    return true;
  }

  bool other_scalar() {
    if (depth_ == 0) check_top(false);
    return something_else();
  }

  // A value that is not what a record, a field or a box is made of; most are of fields that nobody
  // asks for.
  bool something_else() {
    if (in_list_ && depth_ == list_depth_) {
      base::fail(ExitCode::bad_data, file_, ": ", section_, section_.empty() ? "" : " ", "entry ",
                 count_, " (counted from 0) is not an object.");
    }
    if (at_field()) slot().kind = JsonRecord::Kind::other;
    if (in_box()) {
      record_.box_is_numbers_ = false;
      ++record_.box_entries_;
    }
    return true;
  }
  void check_top(bool is_right) const {
    YOLOHPC_CHECK_AS(ExitCode::bad_data, is_right, file_, " is not ",
                     list_depth_ == 1 ? "a list" : "an object with lists",
                     " at the top. Is it the right file?");
  }

  std::string const& file_;
  std::set<std::string> const& wanted_;
  Take const& take_;
  int list_depth_;  // depth inside a list of records
  JsonRecord record_;
  std::set<std::string> seen_;
  std::string section_;
  std::optional<Field> field_;
  std::size_t count_ = 0;
  int depth_ = 0;
  bool in_list_ = false;
  bool in_record_ = false;
};

std::set<std::string> read_json_records(std::filesystem::path const& path,
                                        std::set<std::string> const& sections,
                                        std::function<void(JsonRecord const&)> const& take) {
  std::ifstream stream(path, std::ios::binary);
  YOLOHPC_CHECK_AS(ExitCode::bad_data, stream.is_open(), "cannot open ", path.string(), ": ",
                   std::strerror(errno), ".");
  std::string const file = path.string();
  RecordHandler handler(file, sections, take);
  Json::sax_parse(stream, &handler);
  return handler.seen();
}

}  // namespace yolohpc::eval
