// What launchers say in the environment about this process, held against what MPI says.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace yolohpc::comm {

using Environment = std::map<std::string, std::string>;

/// All variables of this process. Take it before MPI starts: Open MPI adds variables of its own in
/// MPI_Init (PMIX_RANK=0 and others, even to a process that no launcher started; seen with 4.1.4).
Environment launch_environment();

/// Whether one process alone is what the user asked for.
enum class LoneProcess {
  refuse_if_launched,  ///< a launcher that speaks of several tasks is an error
  on_purpose,          ///< the user said so: nothing is refused
};

struct LaunchReport {
  std::string launcher;               ///< variable that told the number of tasks, "" when none did
  std::vector<std::string> warnings;  ///< for rank 0 to print
};

/// Finds a launcher and an MPI library that do not understand each other: N processes, each of
/// which believes to be rank 0 of 1, and all of which would write to one run folder.
///
/// A launcher speaks of several tasks when one of OMPI_COMM_WORLD_SIZE, PMI_SIZE,
/// MV2_COMM_WORLD_SIZE, PALS_SIZE, PALS_LOCAL_SIZE, FLUX_JOB_SIZE, JSM_NAMESPACE_SIZE,
/// SLURM_STEP_NUM_TASKS, SLURM_NTASKS or SLURM_NPROCS is above 1. The Slurm ones count for less:
/// `mpirun -n 1` inside a job of 4 tasks is one process on purpose, so they only warn when a
/// launcher's own variable says 1. RANK, WORLD_SIZE, LOCAL_RANK and MASTER_ADDR belong to other
/// programs and are never read. Values that are not whole numbers are ignored.
///
/// \param mpi_size     size of MPI_COMM_WORLD, at least 1
/// \param environment  as launch_environment() gives it, taken before MPI_Init
/// \throws Error  communication: mpi_size is 1, a variable says more, and `lone` does not allow it;
/// the text
///                names both numbers, the variable and the likely cure
LaunchReport check_launch(int mpi_size, Environment const& environment, LoneProcess lone);

}  // namespace yolohpc::comm
