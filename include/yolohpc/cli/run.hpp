// The program `yolohpc`: from the command line to the exit code.
#pragma once

namespace yolohpc::cli {

/// Runs one command. Catches every exception, prints it, and ends all ranks when MPI runs.
/// \return  the exit code of the contract (base::ExitCode)
int run(int argc, char** argv);

}  // namespace yolohpc::cli
