#include <cstdio>

#include "yolohpc/cli/commands.hpp"
#include "yolohpc/comm/device.hpp"

namespace yolohpc::cli {

Record runtime_record() {
  return {{"mpi_library", comm::World::mpi_library()},
          {"cuda_devices", std::to_string(comm::visible_device_count())}};
}

std::FILE* text_stream(std::string const& json) {
  return json == "-" ? stderr : stdout;
}

base::ExitCode run_info(Session& session, ParsedOptions& options) {
  auto const table = session.rank_table();
  if (!session.world().is_root()) return base::ExitCode::done;
  auto record = runtime_record();
  record.emplace_back("ranks", std::to_string(session.world().size()));
  record.emplace_back("launcher", session.world().launch().launcher.empty()
                                      ? "none seen"
                                      : session.world().launch().launcher);
  auto const json = options.get<std::string>("json");
  if (!json.empty()) {
    record.emplace_back("rank_table", table);
    write_json_result(json, version_json(build_record(record)));
    return base::ExitCode::done;
  }
  std::printf("%s\n%s\n", version_text(build_record(record)).c_str(), table.c_str());
  return base::ExitCode::done;
}

}  // namespace yolohpc::cli
