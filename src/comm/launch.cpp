#include "yolohpc/comm/launch.hpp"

#include <array>
#include <charconv>
#include <optional>

#include <unistd.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::comm {
namespace {

struct Claim {
  char const* variable;
  long tasks;
};

// Set by the launcher itself for the processes it starts. PALS tells the tasks of one node: a lower
// bound.
constexpr std::array direct_variables = {
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",      "MV2_COMM_WORLD_SIZE", "PALS_SIZE",
    "PALS_LOCAL_SIZE",      "FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE"};
// Set for a whole job or step, hence inherited by an mpirun within it.
constexpr std::array slurm_variables = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"};

std::optional<long> whole_number(Environment const& environment, char const* variable) {
  auto const found = environment.find(variable);
  if (found == environment.end()) return std::nullopt;
  std::string const& text = found->second;
  long value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <std::size_t count>
std::vector<Claim> claims(Environment const& environment,
                          std::array<char const*, count> const& variables) {
  std::vector<Claim> found;
  for (char const* const variable : variables) {
    if (auto const tasks = whole_number(environment, variable)) found.push_back({variable, *tasks});
  }
  return found;
}

std::optional<Claim> first_above_one(std::vector<Claim> const& claims) {
  for (auto const& claim : claims) {
    if (claim.tasks > 1) return claim;
  }
  return std::nullopt;
}

[[noreturn]] void refuse_lone_process(Claim const& claim, bool slurm) {
  std::string const cure =
      slurm ? "start it with `srun --mpi=pmix` (`srun --mpi=list` shows what this Slurm offers) or "
              "with "
              "the mpirun of the MPI it was built with; "
            : "start it with the mpirun or mpiexec of the MPI it was built with; ";
  base::fail(
      base::ExitCode::communication, claim.variable, " says ", claim.tasks,
      " tasks, but MPI says 1: the launcher and the MPI library do not understand each other, "
      "and every task would train alone and overwrite the others' files. Likely cure: ",
      cure,
      "in a container, use an MPI that matches the host's. If one process alone is meant, say "
      "--single-process.");
}

std::string slurm_warning(Claim const& claim, int mpi_size) {
  return base::join(
      claim.variable, " says ", claim.tasks, " tasks, MPI says ", mpi_size,
      " ranks. MPI's number counts. If that is not what was meant, check the launch line.");
}

}  // namespace

Environment launch_environment() {
  Environment variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string const text = *entry;
    auto const equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

LaunchReport check_launch(int mpi_size, Environment const& environment, LoneProcess lone) {
  auto const direct = claims(environment, direct_variables);
  auto const slurm = claims(environment, slurm_variables);
  LaunchReport report;
  if (!slurm.empty()) report.launcher = slurm.front().variable;
  if (!direct.empty()) report.launcher = direct.front().variable;

  if (mpi_size == 1 && lone == LoneProcess::refuse_if_launched) {
    if (auto const claim = first_above_one(direct)) refuse_lone_process(*claim, false);
    auto const claim = first_above_one(slurm);
    if (claim && direct.empty()) refuse_lone_process(*claim, true);
  }
  bool const slurm_step_of_mpirun = !direct.empty() && environment.contains("SLURM_STEP_NUM_TASKS");
  // mpirun starts its daemons with srun, so that below them Slurm counts daemons, not ranks.
  if (slurm.empty() || slurm_step_of_mpirun || lone == LoneProcess::on_purpose) return report;
  if (slurm.front().tasks != mpi_size) {
    report.warnings.push_back(slurm_warning(slurm.front(), mpi_size));
  }
  return report;
}

}  // namespace yolohpc::comm
