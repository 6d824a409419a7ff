#include "yolohpc/data/label_source.hpp"

#include "yolohpc/base/error.hpp"

namespace yolohpc::data {

std::string contained_file_name(std::string const& name, std::string const& place) {
  std::filesystem::path const path = std::filesystem::path(name).lexically_normal();
  bool const has_name = path.has_filename() && path != "." && name.find('\0') == std::string::npos;
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, has_name, place, " is \"", name.c_str(),
                   "\", which is no name of a file (empty, a folder, or a zero inside).");
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, !path.is_absolute() && *path.begin() != "..", place,
                   ": file_name leaves the image root: \"", name,
                   "\". Give names below the image folder.");
  return path.string();
}

}  // namespace yolohpc::data
