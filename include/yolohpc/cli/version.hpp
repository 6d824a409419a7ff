// The build record: what `--version` prints, as text or JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace yolohpc::cli {

/// Key and value, both texts; in this order.
using Record = std::vector<std::pair<std::string, std::string>>;

/// How the program was built (base::build_info), the processor's vector level that LibTorch uses,
/// and `extra`: versions that only a module with its own headers can ask for.
Record build_record(Record const& extra = {});
/// `yolohpc VERSION`, then one aligned line for each entry.
std::string version_text(Record const& record);
/// One JSON object.
std::string version_json(Record const& record);

/// Writes `text` and a line end to the file named by --json; "-" is standard output.
void write_json_result(std::string const& path, std::string const& text);

}  // namespace yolohpc::cli
