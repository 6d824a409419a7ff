// The commands of `yolohpc`, one function each.
#pragma once

#include <cstdio>
#include <string>

#include "yolohpc/base/error.hpp"
#include "yolohpc/cli/options.hpp"
#include "yolohpc/cli/session.hpp"
#include "yolohpc/cli/version.hpp"

namespace yolohpc::cli {

/// \name Commands that run on ranks. Collective.
/// \throws Error  with the exit code that fits
base::ExitCode run_train(Session& session, ParsedOptions& options);
base::ExitCode run_val(Session& session, ParsedOptions& options);
base::ExitCode run_bench(Session& session, ParsedOptions& options);
base::ExitCode run_info(Session& session, ParsedOptions& options);

/// \name Commands of one process, without MPI
base::ExitCode run_eval(ParsedOptions& options);
base::ExitCode run_checkpoint(ParsedOptions& options);

/// Where text for people goes: to standard error when --json is "-" and standard output carries
/// JSON.
std::FILE* text_stream(std::string const& json);

/// Versions of the libraries that are loaded, beside those of the build.
Record runtime_record();

}  // namespace yolohpc::cli
