// Reads COCO instances JSON as a stream of events: no tree, so memory does not grow with the
// polygons.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/data/label_source.hpp"

#include "json_characters.hpp"
#include "label_resolver.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;

/// Real files need 7 (polygons); anything far deeper is an attack or a broken writer.
constexpr std::size_t max_depth = 64;

enum class Section : std::uint8_t { none, images, annotations, categories, other };
enum class Field : std::uint8_t {
  other,
  id,
  image_id,
  category_id,
  bbox,
  area,
  iscrowd,
  file_name,
  width,
  height,
  name
};

Field field_of(Section section, std::string const& key) {
  using enum Field;
  static std::unordered_map<std::string, Field> const image_fields{
      {"id", id}, {"file_name", file_name}, {"width", width}, {"height", height}};
  static std::unordered_map<std::string, Field> const annotation_fields{
      {"id", id},     {"image_id", image_id}, {"category_id", category_id},
      {"bbox", bbox}, {"area", area},         {"iscrowd", iscrowd}};
  static std::unordered_map<std::string, Field> const category_fields{{"id", id}, {"name", name}};
  auto const& fields = section == Section::images        ? image_fields
                       : section == Section::annotations ? annotation_fields
                                                         : category_fields;
  auto const found = fields.find(key);
  return found == fields.end() ? other : found->second;
}

/// One value as the parser hands it out.
struct Scalar {
  enum class Type : std::uint8_t {
    null,
    boolean,
    integer,
    too_large_integer,
    real,
    text,
    structure
  };
  Type type = Type::null;
  std::int64_t integer = 0;
  double real = 0;
  std::string* text = nullptr;

  bool is_number() const {
    return type == Type::integer || type == Type::too_large_integer || type == Type::real;
  }
  std::string shown() const {
    switch (type) {
      case Type::null:
        return "null, NaN or Infinity";
      case Type::boolean:
        return integer != 0 ? "true" : "false";
      case Type::integer:
        return std::to_string(integer);
      case Type::too_large_integer:
      case Type::real:
        return base::join(real);
      case Type::text:
        return base::join('"', text->substr(0, 40), '"');
      case Type::structure:
        break;
    }
    return "a list or an object";
  }
};

/// An object of one of the three lists while it is being read.
struct Item {
  bool has_id = false;
  bool has_image_id = false;
  bool has_category_id = false;
  bool has_name = false;
  std::int64_t id = 0;
  std::int64_t image_id = 0;
  std::int64_t category_id = 0;
  std::string name;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  std::array<double, 4> bbox{};
  std::size_t bbox_values = 0;
  bool has_bbox = false;
  std::string bbox_fault;
  double area = std::numeric_limits<double>::quiet_NaN();
  bool is_crowd = false;
};

/// The events of the parser, sorted into images, annotations and categories.
class CocoHandler {
 public:
  CocoHandler(fs::path file, JsonCharacters const& characters, LabelResolver& resolver)
      : file_(std::move(file)), characters_(characters), resolver_(resolver) {}

  bool has_seen(Section section) const { return seen_[static_cast<std::size_t>(section)]; }

  // What nlohmann::json::sax_parse calls. Faults leave as exceptions.
  bool null() { return scalar({}); }
  bool boolean(bool value) { return scalar({.type = Scalar::Type::boolean, .integer = value}); }
  bool number_integer(std::int64_t value) {
    return scalar(
        {.type = Scalar::Type::integer, .integer = value, .real = static_cast<double>(value)});
  }
  bool number_unsigned(std::uint64_t value) {
    bool const fits = value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return scalar({.type = fits ? Scalar::Type::integer : Scalar::Type::too_large_integer,
                   .integer = fits ? static_cast<std::int64_t>(value) : 0,
                   .real = static_cast<double>(value)});
  }
  bool number_float(double value, std::string const&) {
    return scalar({.type = Scalar::Type::real, .real = value});
  }
  bool string(std::string& value) { return scalar({.type = Scalar::Type::text, .text = &value}); }
  bool binary(std::vector<std::uint8_t>&) { return true; }
  bool key(std::string& value);
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool end_object() {
    if (depth_ == item_depth && is_known_section()) finish_item();
    return close();
  }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, std::string const&,
                   nlohmann::detail::exception const& error) {
    base::fail(base::ExitCode::bad_data, file_.string(), ": invalid JSON at byte ",
               characters_.file_offset(position), ": ", error.what(),
               ". Is the file complete, and is it a COCO instances file?");
  }

 private:
  // Depth of what is being read: 1 the whole object, 2 one of its lists, 3 an object in a list, 4 a
  // list in it.
  static constexpr std::size_t list_depth = 2;
  static constexpr std::size_t item_depth = 3;
  static constexpr std::size_t bbox_depth = 4;

  bool is_known_section() const {
    return section_ == Section::images || section_ == Section::annotations ||
           section_ == Section::categories;
  }
  bool open(bool is_object);
  bool close() {
    --depth_;
    return true;
  }
  bool scalar(Scalar value);
  void item_value(Scalar const& value);
  void bbox_value(Scalar const& value);
  void finish_item();
  std::int64_t integer(Scalar const& value, char const* name);
  std::int64_t side(Scalar const& value, char const* name);
  std::string text(Scalar const& value, char const* name);
  std::string place() const;
  void require(bool present, char const* name) const;
  template <typename... Parts>
  [[noreturn]] void reject(Parts const&... parts) const {
    base::fail(base::ExitCode::bad_data, file_.string(), ": ", parts...);
  }

  fs::path file_;
  JsonCharacters const& characters_;
  LabelResolver& resolver_;
  std::size_t depth_ = 0;
  Section section_ = Section::none;
  std::array<bool, 5> seen_{};
  Field field_ = Field::other;
  std::int64_t index_ = 0;
  Item item_;
};

char const* name_of(Section section) {
  switch (section) {
    case Section::images:
      return "images";
    case Section::annotations:
      return "annotations";
    case Section::categories:
      return "categories";
    default:
      return "the file";
  }
}

std::string CocoHandler::place() const {
  return base::join(name_of(section_), '[', index_, ']');
}

bool CocoHandler::key(std::string& value) {
  if (depth_ == 1) {
    section_ = value == "images"        ? Section::images
               : value == "annotations" ? Section::annotations
               : value == "categories"  ? Section::categories
                                        : Section::other;
    seen_[static_cast<std::size_t>(section_)] = true;
    index_ = 0;
  } else if (depth_ == item_depth && is_known_section()) {
    field_ = field_of(section_, value);
  }
  return true;
}

bool CocoHandler::open(bool is_object) {
  ++depth_;
  if (depth_ > max_depth) {
    reject("nesting too deep: more than ", max_depth, " levels in ", place(), ".");
  }
  if (depth_ == 1 && !is_object) {
    reject(
        "begins with a list (COCO instances files are one object with images, annotations and "
        "categories).");
  }
  if (!is_known_section()) return true;
  if (depth_ == list_depth && is_object) reject(name_of(section_), " is an object (needs a list).");
  if (depth_ == item_depth) {
    if (!is_object) reject(place(), " is a list (needs an object).");
    item_ = Item{};
    field_ = Field::other;
  }
  if (depth_ == bbox_depth) {
    if (field_ == Field::bbox && !is_object) {
      item_.has_bbox = true;
      item_.bbox_values = 0;
    } else {
      item_value({.type = Scalar::Type::structure});
    }
  }
  if (depth_ == bbox_depth + 1 && field_ == Field::bbox) {
    bbox_value({.type = Scalar::Type::structure});
  }
  return true;
}

bool CocoHandler::scalar(Scalar value) {
  if (depth_ == 0) reject("holds a single value (needs an object).");
  if (!is_known_section()) return true;
  if (depth_ == 1) reject(name_of(section_), " is ", value.shown(), " (needs a list).");
  if (depth_ == list_depth) reject(place(), " is ", value.shown(), " (needs an object).");
  if (depth_ == item_depth) item_value(value);
  if (depth_ == bbox_depth && field_ == Field::bbox) bbox_value(value);
  return true;
}

void CocoHandler::bbox_value(Scalar const& value) {
  std::size_t const index = item_.bbox_values++;
  if (!value.is_number()) {
    if (item_.bbox_fault.empty()) {
      item_.bbox_fault = base::join("bbox[", index, "] is ", value.shown(), ", not a number");
    }
    return;
  }
  if (index < item_.bbox.size()) item_.bbox[index] = value.real;
}

std::int64_t CocoHandler::integer(Scalar const& value, char const* name) {
  if (value.type != Scalar::Type::integer) {
    reject(place(), '.', name, " is not an integer (it is ", value.shown(),
           "; 64-bit whole numbers are needed). Correct the file.");
  }
  return value.integer;
}

/// Width or height: null, 0 or missing means "look into the file".
std::int64_t CocoHandler::side(Scalar const& value, char const* name) {
  if (value.type == Scalar::Type::null) return 0;
  bool const is_whole = value.is_number() && value.real == std::floor(value.real);
  if (!is_whole || value.real < 0 || value.real > std::numeric_limits<int>::max()) {
    reject(place(), '.', name, " is ", value.shown(), " (needs a whole number of pixels).");
  }
  return static_cast<std::int64_t>(value.real);
}

std::string CocoHandler::text(Scalar const& value, char const* name) {
  if (value.type != Scalar::Type::text) {
    reject(place(), '.', name, " is ", value.shown(), " (needs a text).");
  }
  return std::move(*value.text);
}

void CocoHandler::item_value(Scalar const& value) {
  switch (field_) {
    case Field::id:
      item_.id = integer(value, "id");
      item_.has_id = true;
      break;
    case Field::image_id:
      item_.image_id = integer(value, "image_id");
      item_.has_image_id = true;
      break;
    case Field::category_id:
      item_.category_id = integer(value, "category_id");
      item_.has_category_id = true;
      break;
    case Field::bbox:
      item_.has_bbox = true;
      item_.bbox_fault = base::join("bbox is ", value.shown(), " (needs a list of 4 numbers)");
      break;
    case Field::area:
      if (value.is_number()) item_.area = value.real;
      break;
    case Field::iscrowd:
      item_.is_crowd = value.type == Scalar::Type::boolean ? value.integer != 0
                                                           : value.is_number() && value.real != 0;
      break;
    case Field::file_name:
      item_.name = text(value, "file_name");
      item_.has_name = true;
      break;
    case Field::name:
      item_.name = text(value, "name");
      item_.has_name = true;
      break;
    case Field::width:
      item_.width_px = side(value, "width");
      break;
    case Field::height:
      item_.height_px = side(value, "height");
      break;
    case Field::other:
      break;
  }
}

void CocoHandler::require(bool present, char const* name) const {
  if (!present) reject(place(), " has no ", name, ". Correct the file.");
}

void CocoHandler::finish_item() {
  require(item_.has_id, "id");
  if (section_ == Section::images) {
    require(item_.has_name, "file_name");
    resolver_.add_image({.id = item_.id,
                         .file_name = contained_file_name(
                             item_.name, base::join(file_.string(), ": ", place(), ".file_name")),
                         .width_px = static_cast<int>(item_.width_px),
                         .height_px = static_cast<int>(item_.height_px)});
  } else if (section_ == Section::annotations) {
    require(item_.has_image_id, "image_id");
    require(item_.has_category_id, "category_id");
    if (!item_.has_bbox) {
      item_.bbox_fault = "it has no bbox";
    } else if (item_.bbox_fault.empty() && item_.bbox_values != item_.bbox.size()) {
      item_.bbox_fault = base::join("bbox has ", item_.bbox_values, " numbers (needs 4)");
    }
    resolver_.add_annotation({.id = item_.id,
                              .image_id = item_.image_id,
                              .category_id = item_.category_id,
                              .bbox = item_.bbox,
                              .area = item_.area,
                              .is_crowd = item_.is_crowd,
                              .fault = std::move(item_.bbox_fault)});
  } else {
    resolver_.add_category(
        {item_.id, item_.has_name ? std::move(item_.name) : std::to_string(item_.id)});
  }
  ++index_;
}

void check_sections(CocoHandler const& handler, fs::path const& file) {
  for (Section const section : {Section::images, Section::categories, Section::annotations}) {
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, handler.has_seen(section), file.string(), ": no ",
                     name_of(section),
                     " (the key is missing; a COCO instances file has images, annotations and "
                     "categories).");
  }
}

}  // namespace

LabelSource read_coco_json(fs::path const& file, fs::path const& image_root) {
  JsonCharacters characters(file);
  LabelResolver resolver(file.string());
  CocoHandler handler(file, characters, resolver);
  nlohmann::json::sax_parse(JsonCharacterIterator(characters), JsonCharacterIterator(), &handler);
  check_sections(handler, file);
  LabelSource source = std::move(resolver).finish();
  source.image_root = image_root;
  return source;
}

}  // namespace yolohpc::data
