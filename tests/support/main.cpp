// The main of every test program. Started by mpirun for a test with ranks, alone otherwise.
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>
#include <mpi.h>

namespace {

// A failing rank must fail the whole test, and a rank that skips must not hide it.
int agree_on(int failed) {
  int worst = 0;
  MPI_Allreduce(&failed, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return worst;
}

int exit_status(int failed) {
  auto const& unit = *::testing::UnitTest::GetInstance();
  if (failed != 0) return 1;
  // 77 tells CTest "skipped": everything that ran asked to be skipped.
  bool const all_skipped = unit.skipped_test_count() > 0 && unit.successful_test_count() == 0;
  return all_skipped ? 77 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  char const* wanted = std::getenv("YOLOHPC_TEST_RANKS");
  if (wanted == nullptr) return exit_status(RUN_ALL_TESTS());
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int size = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size != std::atoi(wanted)) {
    std::fprintf(stderr, "this test wants %s ranks and was started with %d\n", wanted, size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank != 0) {
    // One report is enough; failures of other ranks are printed by their own assertions.
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    if (std::getenv("YOLOHPC_TEST_ALL_RANKS") == nullptr) {
      struct OnlyFailures : ::testing::EmptyTestEventListener {
        void OnTestPartResult(::testing::TestPartResult const& result) override {
          if (result.failed()) std::fprintf(stderr, "%s\n", result.summary());
        }
      };
      delete listeners.Release(listeners.default_result_printer());
      listeners.Append(new OnlyFailures);
    }
  }
  int const status = exit_status(agree_on(RUN_ALL_TESTS()));
  MPI_Finalize();
  return status;
}
