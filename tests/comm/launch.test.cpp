#include "yolohpc/comm/launch.hpp"

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::comm {
namespace {

using base::ExitCode;

std::string refusal(int mpi_size, Environment const& environment,
                    LoneProcess lone = LoneProcess::refuse_if_launched) {
  try {
    check_launch(mpi_size, environment, lone);
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::communication);
    return error.what();
  }
  return "";
}

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST(CheckLaunch, RefusesALoneProcessThatALauncherCountedAmongSeveral) {
  for (char const* const variable :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE", "PALS_LOCAL_SIZE",
        "FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
        "SLURM_NPROCS"}) {
    auto const text = refusal(1, {{variable, "37"}});
    EXPECT_TRUE(has(text, variable) && has(text, "37 tasks") && has(text, "MPI says 1")) << text;
    EXPECT_TRUE(has(text, "--single-process")) << text;
  }
  EXPECT_TRUE(has(refusal(1, {{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}}), "--mpi=pmix"));
}

TEST(CheckLaunch, AllowsALoneProcessOnPurpose) {
  EXPECT_EQ(refusal(1, {{"SLURM_NTASKS", "4"}}, LoneProcess::on_purpose), "");
  EXPECT_EQ(refusal(1, {{"PMI_SIZE", "4"}}, LoneProcess::on_purpose), "");
}

TEST(CheckLaunch, AllowsCleanEnvironmentsAndMatchingNumbers) {
  EXPECT_EQ(refusal(1, {}), "");
  EXPECT_EQ(refusal(1, {{"SLURM_NTASKS", "1"}, {"PMI_SIZE", "1"}}), "");
  EXPECT_EQ(refusal(4, {{"OMPI_COMM_WORLD_SIZE", "4"}}), "");
  EXPECT_TRUE(check_launch(4, {{"SLURM_NTASKS", "4"}}, {}).warnings.empty());
}

TEST(CheckLaunch, BelievesMpirunWithinASlurmJob) {
  Environment const environment = {{"SLURM_NTASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  EXPECT_EQ(refusal(1, environment), "");
  auto const report = check_launch(1, environment, {});
  EXPECT_EQ(report.launcher, "OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(report.warnings.size(), 1u);
}

TEST(CheckLaunch, WarnsWhenSlurmAndMpiCountDifferently) {
  auto const report = check_launch(2, {{"SLURM_NTASKS", "8"}}, {});
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_TRUE(has(report.warnings[0], "8 tasks") && has(report.warnings[0], "2 ranks"));
}

TEST(CheckLaunch, DoesNotTakeTheDaemonsOfMpirunForRanks) {
  Environment const below_daemon = {
      {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"OMPI_COMM_WORLD_SIZE", "8"}};
  EXPECT_TRUE(check_launch(8, below_daemon, {}).warnings.empty());
}

TEST(CheckLaunch, IgnoresVariablesOfOtherProgramsAndText) {
  EXPECT_EQ(
      refusal(1, {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "3"}, {"MASTER_ADDR", "a"}}),
      "");
  EXPECT_EQ(refusal(1, {{"SLURM_NTASKS", "4x"}, {"PMI_SIZE", ""}}), "");
}

TEST(LaunchEnvironment, ReadsTheVariablesOfThisProcess) {
  setenv("YOLOHPC_LAUNCH_TEST", "a=b", 1);
  EXPECT_EQ(launch_environment().at("YOLOHPC_LAUNCH_TEST"), "a=b");
}

}  // namespace
}  // namespace yolohpc::comm
