#include "yolohpc/cli/run.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/log.hpp"
#include "yolohpc/checkpoint/file_size_signal.hpp"
#include "yolohpc/cli/commands.hpp"
#include "yolohpc/cli/options.hpp"
#include "yolohpc/cli/version.hpp"

namespace yolohpc::cli {
namespace {

using base::Error;
using base::ExitCode;

// The rank by the launcher's word, for what is said before MPI starts: one copy of a message is
// enough.
bool is_root_by_environment() {
  for (auto const* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    char const* value = std::getenv(name);
    if (value != nullptr) return std::atoi(value) == 0;
  }
  return true;
}

void print_error(std::string const& text) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", text.c_str());
  std::fflush(stderr);
}

using RankCommand = ExitCode (*)(Session&, ParsedOptions&);
using LoneCommand = ExitCode (*)(ParsedOptions&);

std::map<std::string, RankCommand> const& rank_commands() {
  static std::map<std::string, RankCommand> const commands = {
      {"train", run_train}, {"val", run_val}, {"bench", run_bench}, {"info", run_info}};
  return commands;
}

std::map<std::string, LoneCommand> const& lone_commands() {
  static std::map<std::string, LoneCommand> const commands = {{"eval", run_eval},
                                                              {"checkpoint", run_checkpoint}};
  return commands;
}

// Every rank meets an error of settings or data, and rank 0 speaks for all; an error of one rank
// must still be seen. So the others wait a moment before they speak, and rank 0 usually ends them
// within it.
[[noreturn]] void end_all_ranks(Session& session, std::string const& text, ExitCode code) {
  if (session.world().rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::fflush(stdout);
  if (session.world().size() > 1) {
    session.log().this_rank(base::Level::error, text);
  } else {
    session.log().root(base::Level::error, text);
  }
  comm::World::abort(code);
}

ExitCode run_on_ranks(RankCommand command, int argc, char** argv, ParsedOptions& options) {
  Session session(argc, argv, options);
  try {
    return command(session, options);
  } catch (Error const& error) {
    end_all_ranks(session, error.what(), error.code());
  } catch (std::exception const& error) {
    end_all_ranks(session, error.what(), ExitCode::failure);
  }
}

ExitCode dispatch(Invocation const& invocation, int argc, char** argv) {
  auto options = parse(invocation.command, invocation.arguments, process_environment());
  if (options.wants_help()) {
    std::printf("%s", command_help(yolohpc_table(), invocation.command).c_str());
    return ExitCode::done;
  }
  if (options.wants_version()) {
    std::printf("%s", version_text(build_record(runtime_record())).c_str());
    return ExitCode::done;
  }
  if (auto const found = rank_commands().find(invocation.command); found != rank_commands().end()) {
    return run_on_ranks(found->second, argc, argv, options);
  }
  if (auto const found = lone_commands().find(invocation.command); found != lone_commands().end()) {
    for (auto const& warning : options.warnings()) {
      base::Log().root(base::Level::warning, warning);
    }
    return found->second(options);
  }
  base::fail(ExitCode::usage, "`yolohpc ", invocation.command,
             "` is planned and not in this build.");
}

ExitCode run_checked(int argc, char** argv) {
  auto const invocation =
      read_invocation(yolohpc_table(), std::vector<std::string>(argv + 1, argv + argc));
  if (invocation.wants_version && !invocation.json.empty()) {
    write_json_result(invocation.json, version_json(build_record(runtime_record())));
    return ExitCode::done;
  }
  if (invocation.wants_version) {
    std::printf("%s", version_text(build_record(runtime_record())).c_str());
    return ExitCode::done;
  }
  if (invocation.wants_help) {
    std::printf("%s", top_level_help(yolohpc_table()).c_str());
    return ExitCode::done;
  }
  return dispatch(invocation, argc, argv);
}

}  // namespace

int run(int argc, char** argv) {
  checkpoint::ignore_file_size_signal();
  try {
    return static_cast<int>(run_checked(argc, argv));
  } catch (Error const& error) {
    if (is_root_by_environment()) print_error(error.what());
    return static_cast<int>(error.code());
  } catch (std::exception const& error) {
    print_error(error.what());
    return static_cast<int>(ExitCode::failure);
  }
}

}  // namespace yolohpc::cli
