// No rank may wait for ever, and the job must return the code of the rank that failed.
#include <cstdlib>
#include <sstream>

#include <gtest/gtest.h>

#include "yolohpc/base/clock.hpp"

#include "support/golden.hpp"

namespace yolohpc::testing {
namespace {

struct Outcome {
  int status;
  std::string output;
  double elapsed_s;
};

std::string variable(char const* name) {
  char const* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Outcome run(std::string const& command) {
  base::Stopwatch const watch;
  auto const result = run_command(command);
  return {result.status, result.output, watch.elapsed_s()};
}

Outcome run_two_ranks(std::string const& mode) {
  return run("timeout 60 " + variable("YOLOHPC_MPIEXEC") + " 2 " + variable("YOLOHPC_COMM_FAULTS") +
             " " + mode);
}

Outcome run_bare(std::string const& environment, std::string const& arguments = "none") {
  return run("timeout 60 env " + environment + " " + variable("YOLOHPC_COMM_FAULTS") + " " +
             arguments);
}

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST(Deadline, EveryCollectiveEndsWhenARankStaysAway) {
  auto const outcome = run_two_ranks("stay-away");
  EXPECT_EQ(outcome.status, 4) << outcome.output;
  std::istringstream lines(outcome.output);
  int cases = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("CASE ", 0) != 0) continue;
    ++cases;
    std::string const name = line.substr(5, line.find(" | ") - 5);
    std::string const collective = name == "async all_reduce" ? "all_reduce" : name;
    double const held_s = std::stod(line.substr(line.find(" | ") + 3));
    EXPECT_TRUE(held_s >= 1 && held_s < 2.5) << line;
    EXPECT_TRUE(has(line, "rank 0 of 2 on ") && has(line, "in " + collective) &&
                has(line, "waited 1.0 s") && has(line, "--comm-timeout"))
        << line;
  }
  EXPECT_EQ(cases, 9) << outcome.output;
}

TEST(Failure, OneRankThatThrowsEndsTheJobWithItsCode) {
  auto const outcome = run_two_ranks("throw");
  EXPECT_EQ(outcome.status, 3) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "shard 7 is cut short")) << outcome.output;
  EXPECT_LT(outcome.elapsed_s, 20);
}

TEST(Failure, AKilledRankEndsTheJob) {
  auto const outcome = run_two_ranks("kill");
  EXPECT_NE(outcome.status, 0) << outcome.output;
  EXPECT_LT(outcome.elapsed_s, 20);
}

TEST(Failure, AStoppedRankEndsTheJobByTheDeadline) {
  auto const outcome = run_two_ranks("stop");
  EXPECT_EQ(outcome.status, 4) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "rank 0 of 2 on ") && has(outcome.output, "waited 2.0 s"))
      << outcome.output;
  EXPECT_LT(outcome.elapsed_s, 20);
}

TEST(Failure, ARankThatStopsBeforeTheEndIsNotWaitedForForEver) {
  auto const outcome = run_two_ranks("stop-before-the-end");
  EXPECT_EQ(outcome.status, 4) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "MPI_Finalize")) << outcome.output;
  EXPECT_LT(outcome.elapsed_s, 20);
}

TEST(Failure, AbortReachesACollectiveThatIsUnderWay) {
  auto const outcome = run_two_ranks("abort");
  EXPECT_EQ(outcome.status, 4) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "barrier") && has(outcome.output, "told to stop"))
      << outcome.output;
}

TEST(Launch, ABareStartWithLauncherVariablesIsRefused) {
  for (char const* const environment :
       {"SLURM_NTASKS=4 SLURM_PROCID=2", "OMPI_COMM_WORLD_SIZE=4", "PMI_SIZE=4"}) {
    auto const outcome = run_bare(environment);
    EXPECT_EQ(outcome.status, 4) << environment << outcome.output;
    EXPECT_TRUE(has(outcome.output, "says 4 tasks, but MPI says 1")) << outcome.output;
    EXPECT_FALSE(has(outcome.output, "is through")) << outcome.output;
    EXPECT_LT(outcome.elapsed_s, 5);
  }
}

TEST(Launch, ABareStartOnPurposeOrWithoutLauncherRuns) {
  EXPECT_EQ(run_bare("SLURM_NTASKS=4", "none --single-process").status, 0);
  // MPI keeps memory to the end: the leak check of a build with sanitizers stays off.
  auto const clean = run_bare("-i PATH=\"$PATH\" ASAN_OPTIONS=\"$ASAN_OPTIONS\"");
  EXPECT_EQ(clean.status, 0) << clean.output;
  EXPECT_TRUE(has(clean.output, "rank 0 of 1 is through"));
}

}  // namespace
}  // namespace yolohpc::testing
