// Reads YOLO data sets: a yaml file, folders of images, folders of text files.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"
#include "yolohpc/data/label_source.hpp"

#include "label_resolver.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;
using base::ExitCode;

/// How far a normalised value may lie outside [0, 1], from rounding in the tool that wrote it.
constexpr double slack = 0.01;
constexpr std::size_t columns = 5;

/// What data.yaml says of one split.
struct DataYaml {
  std::vector<Category> categories;
  std::vector<fs::path> entries;  ///< folders and lists, resolved
  fs::path root;
};

std::vector<Category> read_names(YAML::Node const& names, std::string const& origin) {
  std::vector<Category> categories;
  if (names.IsDefined() && names.IsSequence()) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      categories.push_back({static_cast<std::int64_t>(i), names[i].as<std::string>()});
    }
  } else if (names.IsDefined() && names.IsMap()) {
    for (auto const& entry : names) {
      categories.push_back({entry.first.as<std::int64_t>(), entry.second.as<std::string>()});
    }
  }
  YOLOHPC_CHECK_AS(ExitCode::bad_data, !categories.empty(), origin,
                   " has no names (needs a list, or a map from class number to name).");
  return categories;
}

DataYaml read_yaml(fs::path const& file, std::string const& split, fs::path const& root) {
  try {
    YAML::Node const content = YAML::Load(base::read_text_file(file));
    YOLOHPC_CHECK_AS(ExitCode::bad_data, content.IsMap(), file.string(),
                     " is no data.yaml (needs the keys path, train, val and names).");
    DataYaml result;
    result.categories = read_names(content["names"], file.string());
    fs::path const given = content["path"] ? content["path"].as<std::string>() : ".";
    result.root = fs::absolute(root.empty() ? file.parent_path() / given : root).lexically_normal();
    YAML::Node const entry = content[split];
    YOLOHPC_CHECK_AS(ExitCode::bad_data, entry && !entry.IsNull(), file.string(), " has no entry '",
                     split, "'. Name the split with --split as the file does.");
    if (entry.IsSequence()) {
      for (auto const& part : entry) {
        result.entries.push_back((result.root / part.as<std::string>()).lexically_normal());
      }
    } else {
      result.entries.push_back((result.root / entry.as<std::string>()).lexically_normal());
    }
    return result;
  } catch (YAML::Exception const& error) {
    base::fail(ExitCode::bad_data, file.string(), ": ", error.what(), ". Correct the file.");
  }
}

/// By name, since there is no list: what nobody would call an image is left alone, the rest is
/// judged by content.
bool is_image_name(fs::path const& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  constexpr std::array<std::string_view, 9> endings{".jpg", ".jpeg", ".png", ".bmp", ".webp",
                                                    ".tif", ".tiff", ".gif", ".heic"};
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

void list_folder(fs::path const& folder, std::vector<fs::path>& images) {
  for (auto const& entry : fs::recursive_directory_iterator(folder)) {
    if (is_image_name(entry.path())) images.push_back(entry.path().lexically_normal());
  }
}

void read_list(fs::path const& file, fs::path const& root, std::vector<fs::path>& images) {
  std::istringstream lines(base::read_text_file(file));
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) images.push_back((root / line).lexically_normal());
  }
}

std::vector<fs::path> list_images(DataYaml const& yaml, std::string const& origin) {
  std::vector<fs::path> images;
  for (fs::path const& entry : yaml.entries) {
    if (fs::is_directory(entry)) {
      list_folder(entry, images);
    } else {
      YOLOHPC_CHECK_AS(ExitCode::bad_data, fs::is_regular_file(entry), origin, " names ",
                       entry.string(), ", which does not exist. Correct `path` or the entry.");
      read_list(entry, yaml.root, images);
    }
  }
  std::sort(images.begin(), images.end());
  images.erase(std::unique(images.begin(), images.end()), images.end());
  YOLOHPC_CHECK_AS(ExitCode::bad_data, !images.empty(), origin, ": no images in ",
                   yaml.entries.front().string(), ".");
  return images;
}

bool is_below(fs::path const& path, fs::path const& folder) {
  return *path.lexically_relative(folder).begin() != "..";
}

/// The data set's folder, or the nearest folder above that holds all images.
fs::path root_of(fs::path root, std::vector<fs::path> const& images) {
  if (!root.has_filename()) root = root.parent_path();
  for (fs::path const& image : images) {
    while (!is_below(image, root)) root = root.parent_path();
  }
  return root;
}

fs::path label_file_of(fs::path const& image) {
  fs::path label = image;
  label.replace_extension(".txt");
  std::string text = label.string();
  constexpr std::string_view images_part = "/images/";
  if (auto const at = text.rfind(images_part); at != std::string::npos) {
    text.replace(at, images_part.size(), "/labels/");
  }
  return text;
}

/// A row of numbers; empty when a column is none.
std::optional<std::vector<double>> numbers_of(std::string const& line) {
  std::istringstream words(line);
  std::vector<double> values;
  for (std::string word; words >> word;) {
    double value = 0;
    auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    values.push_back(value);
  }
  return values;
}

/// What is wrong with a row; empty when nothing is.
std::string row_fault(std::optional<std::vector<double>> const& values, std::string const& line) {
  if (!values) return base::join("\"", line.substr(0, 60), "\" is no row of numbers");
  if (values->size() != columns) {
    return base::join("it has ", values->size(), " columns (needs class cx cy w h)");
  }
  double const label = values->front();
  if (!(label >= 0 && label == std::floor(label) && label < 1e9)) {
    return base::join("class ", label, " is no whole number");
  }
  for (std::size_t i = 1; i < columns; ++i) {
    double const value = (*values)[i];
    if (!(value >= -slack && value <= 1 + slack)) {
      return base::join("value ", value, " is not a share of the image (0 to 1)");
    }
  }
  return "";
}

/// Reads the label files of one data set.
class YoloReader {
 public:
  YoloReader(DataYaml yaml, std::string origin)
      : yaml_(std::move(yaml)), resolver_(origin), images_(list_images(yaml_, origin)) {
    for (Category const& category : yaml_.categories) resolver_.add_category(category);
  }

  LabelSource read() && {
    fs::path const root = root_of(yaml_.root, images_);
    std::int64_t id = 0;
    for (fs::path const& image : images_) {
      resolver_.add_image({.id = ++id, .file_name = image.lexically_relative(root).string()});
      read_labels(label_file_of(image), root, id);
    }
    LabelSource source = std::move(resolver_).finish();
    source.image_root = root;
    source.unit = BoxUnit::image_fraction;
    source.faults.insert(source.faults.end(), faults_.begin(), faults_.end());
    return source;
  }

 private:
  void read_labels(fs::path const& file, fs::path const& root, std::int64_t image_id) {
    if (!fs::exists(file)) return;
    std::istringstream lines(base::read_text_file(file));
    std::int64_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      auto const values = numbers_of(line);
      std::string fault = row_fault(values, line);
      if (fault.empty() && !has_class(static_cast<std::int64_t>(values->front()))) {
        add_fault("annotation_unknown_category", file, root,
                  base::join("line ", number, ": class ", values->front(), " is not among the ",
                             yaml_.categories.size(), " names"));
      } else if (!fault.empty()) {
        add_fault("annotation_bad_box", file, root, base::join("line ", number, ": ", fault));
      } else {
        add_row(*values, image_id);
      }
    }
  }

  bool has_class(std::int64_t id) const {
    return std::any_of(yaml_.categories.begin(), yaml_.categories.end(),
                       [id](Category const& category) { return category.id == id; });
  }

  void add_row(std::vector<double> const& values, std::int64_t image_id) {
    resolver_.add_annotation({.id = ++annotation_id_,
                              .image_id = image_id,
                              .category_id = static_cast<std::int64_t>(values[0]),
                              .bbox = {values[1], values[2], values[3], values[4]}});
  }

  void add_fault(char const* kind, fs::path const& file, fs::path const& root, std::string reason) {
    faults_.push_back({.kind = kind,
                       .file = file.lexically_relative(root).string(),
                       .image_id = std::nullopt,
                       .annotation_id = std::nullopt,
                       .reason = std::move(reason)});
  }

  DataYaml yaml_;
  LabelResolver resolver_;
  std::vector<fs::path> images_;
  std::vector<PackFault> faults_;
  std::int64_t annotation_id_ = 0;
};

}  // namespace

LabelSource read_yolo_folder(fs::path const& yaml, std::string const& split, fs::path const& root) {
  return YoloReader(read_yaml(yaml, split, root), yaml.string()).read();
}

}  // namespace yolohpc::data
