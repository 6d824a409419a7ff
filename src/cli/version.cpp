#include "yolohpc/cli/version.hpp"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "yolohpc/base/build_info.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

namespace yolohpc::cli {

Record build_record(Record const& extra) {
  auto const& info = base::build_info();
  Record record = {{"version", info.version},   {"git_revision", info.git_revision},
                   {"compiler", info.compiler}, {"build_type", info.build_type},
                   {"native", info.native},     {"sanitizer", info.sanitizer},
                   {"libtorch", info.libtorch}, {"cuda", info.cuda},
                   {"hdf5", info.hdf5},         {"mpi", info.mpi}};
  record.insert(record.end(), extra.begin(), extra.end());
  return record;
}

std::string version_text(Record const& record) {
  std::size_t width = 0;
  for (auto const& entry : record) width = std::max(width, entry.first.size());
  std::string text = "yolohpc";
  for (auto const& [key, value] : record) {
    if (key == "version") text += " " + value;
  }
  text += '\n';
  for (auto const& [key, value] : record) {
    if (key == "version") continue;
    text += "  " + key + std::string(width - key.size() + 2, ' ') + value + '\n';
  }
  return text;
}

std::string version_json(Record const& record) {
  auto json = nlohmann::ordered_json::object();
  for (auto const& [key, value] : record) json[key] = value;
  return json.dump(2);
}

void write_json_result(std::string const& path, std::string const& text) {
  if (path != "-") {
    base::write_file_atomically(path, text + '\n');
    return;
  }
  bool const written = std::fputs((text + '\n').c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  YOLOHPC_CHECK(written,
                "cannot write the JSON result to standard output (closed pipe or full disk).");
}

}  // namespace yolohpc::cli
