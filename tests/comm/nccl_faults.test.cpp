// What the NCCL communicator does when NCCL goes wrong, over the stand-in and on one rank.
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"

#include "stand_in_nccl.hpp"

namespace yolohpc::testing {
namespace {

using comm::ReduceOp;

constexpr double timeout_s = 0.4;

class NcclFaults : public ::testing::Test {
 protected:
  std::unique_ptr<comm::Communicator> make() {
    comm::NcclLimits limits{.timeout_s = timeout_s, .grace_s = 0.4, .watch_interval_s = 0.02};
    limits.last_resort = [this](std::string const& text) {
      std::lock_guard const lock(mutex_);
      last_resort_ = text;
    };
    return comm::make_nccl_communicator_over(std::make_unique<StandInNccl>(0, script), *host,
                                             limits);
  }
  std::string last_resort() {
    std::lock_guard const lock(mutex_);
    return last_resort_;
  }

  comm::World world;
  std::unique_ptr<comm::Communicator> host = comm::make_single_communicator();
  std::shared_ptr<NcclScript> script = std::make_shared<NcclScript>();
  at::Tensor values = at::ones({4});

 private:
  std::mutex mutex_;
  std::string last_resort_;
};

template <typename Call>
std::string failure(Call const& call) {
  try {
    call();
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::communication);
    return error.what();
  }
  return "";
}

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

void sleep_s(double duration_s) {
  std::this_thread::sleep_for(std::chrono::duration<double>(duration_s));
}

TEST_F(NcclFaults, AFailureOfTheUniqueIdIsNamed) {
  script->unique_id_failure = "no socket interface";
  EXPECT_TRUE(has(failure([&] { make(); }), "no socket interface"));
}

TEST_F(NcclFaults, AFailureDuringTheStartIsNamedAndAborted) {
  script->init_failure = "unhandled system error";
  auto const text = failure([&] { make(); });
  EXPECT_TRUE(has(text, "unhandled system error") && has(text, "ncclCommInitRankConfig") &&
              has(text, "rank 0 of 1"))
      << text;
  EXPECT_EQ(script->aborts, 1);
}

TEST_F(NcclFaults, AStartThatNeverEndsIsGivenUpAtTheDeadline) {
  script->polls_in_init = NcclScript::never;
  base::Stopwatch const watch;
  auto const text = failure([&] { make(); });
  EXPECT_TRUE(has(text, "ncclCommInitRankConfig") && has(text, "--comm-timeout")) << text;
  EXPECT_GE(watch.elapsed_s(), timeout_s);
  EXPECT_LT(watch.elapsed_s(), 5 * timeout_s);
  EXPECT_EQ(script->aborts, 1);
}

TEST_F(NcclFaults, ANetworkThatMovesNothingIsFoundAtTheStart) {
  script->stall_from = 0;
  EXPECT_TRUE(has(failure([&] { make(); }), "first all_reduce"));
  EXPECT_EQ(script->aborts, 1);
}

TEST_F(NcclFaults, ACallThatFailsIsNamedAndEndsTheCommunicator) {
  auto const nccl = make();
  script->call_failure = "ncclAllReduce returned 4: invalid argument";
  EXPECT_TRUE(
      has(failure([&] { nccl->all_reduce_in_place(values, ReduceOp::sum); }), "invalid argument"));
  script->call_failure = "";
  EXPECT_TRUE(has(failure([&] { nccl->broadcast_in_place(values, 0); }), "invalid argument"));
  EXPECT_EQ(script->aborts, 1);
}

TEST_F(NcclFaults, AnAsynchronousErrorReachesTheWaitingCaller) {
  auto const nccl = make();
  script->fail_from = script->collectives.load();
  auto const handle = nccl->all_reduce_async(values, ReduceOp::sum);
  sleep_s(timeout_s / 2);
  EXPECT_TRUE(handle->done());
  auto const text = failure([&] { handle->wait(); });
  EXPECT_TRUE(has(text, "cable pulled") && has(text, "in all_reduce")) << text;
  EXPECT_EQ(script->aborts, 1);
}

TEST_F(NcclFaults, AStallIsEndedAtTheDeadlineAndFoundByTheNextCall) {
  auto const nccl = make();
  script->stall_from = script->collectives.load();
  base::Stopwatch const watch;
  // The stand-in blocks the caller where a device would block its stream.
  nccl->all_reduce_in_place(values, ReduceOp::sum);
  EXPECT_GE(watch.elapsed_s(), timeout_s);
  EXPECT_LT(watch.elapsed_s(), 5 * timeout_s);
  auto const text = failure([&] { nccl->all_gather(values); });
  EXPECT_TRUE(has(text, "in all_reduce over NCCL") && has(text, "--comm-timeout")) << text;
  EXPECT_EQ(last_resort(), "");
}

TEST_F(NcclFaults, ACallerThatKnowsIsNotKilled) {
  auto const nccl = make();
  script->stall_from = script->collectives.load();
  auto const handle = nccl->all_reduce_async(values, ReduceOp::sum);
  sleep_s(timeout_s * 1.5);
  EXPECT_NE(failure([&] { handle->wait(); }), "");
  sleep_s(1);
  EXPECT_EQ(last_resort(), "");
}

TEST_F(NcclFaults, ACallerThatMakesNoMoreCallsMeetsTheLastResort) {
  auto const nccl = make();
  script->stall_from = script->collectives.load();
  auto const handle = nccl->all_reduce_async(values, ReduceOp::sum);
  sleep_s(timeout_s);
  EXPECT_EQ(last_resort(), "");
  sleep_s(1.5);
  EXPECT_TRUE(has(last_resort(), "in all_reduce over NCCL")) << last_resort();
}

TEST_F(NcclFaults, ACallerHeldInsideNcclMeetsTheLastResort) {
  auto const nccl = make();
  script->call_blocks_s = 2;
  nccl->all_reduce_in_place(values, ReduceOp::sum);
  EXPECT_TRUE(has(last_resort(), "inside one call of NCCL")) << last_resort();
}

TEST_F(NcclFaults, QueuedGraphsAreUnderTheDeadlineWhenAsked) {
  auto const nccl = make();
  nccl->watch_queued_work("graph of step 7");
  sleep_s(timeout_s * 1.5);
  EXPECT_EQ(script->aborts, 0);
  script->callers_stream_stalls = true;
  nccl->watch_queued_work("graph of step 8");
  sleep_s(timeout_s * 1.5);
  EXPECT_TRUE(has(failure([&] { nccl->all_gather(values); }), "graph of step 8"));
}

TEST_F(NcclFaults, CapturedCollectivesHaveNoDeadlineBeforeTheyBegin) {
  auto const nccl = make();
  script->captures = true;
  script->stall_from = script->collectives.load();
  auto const handle = nccl->all_reduce_async(values, ReduceOp::sum);
  sleep_s(timeout_s * 1.5);
  EXPECT_EQ(script->aborts, 0);
}

TEST_F(NcclFaults, AnExceptionOnItsWayAbortsNcclInsteadOfWaiting) {
  EXPECT_EQ(failure([&] {
              auto const nccl = make();
              throw base::Error("elsewhere", base::ExitCode::communication);
            }),
            "elsewhere");
  EXPECT_EQ(script->aborts, 1);
  EXPECT_EQ(script->orderly_ends, 0);
}

TEST_F(NcclFaults, AbortIsFinal) {
  auto const nccl = make();
  nccl->abort();
  EXPECT_TRUE(has(failure([&] { nccl->all_reduce_in_place(values, ReduceOp::sum); }), "aborted"));
  EXPECT_EQ(script->aborts, 1);
}

TEST_F(NcclFaults, ATimeOutThatIsNotAboveZeroIsRefused) {
  auto backend = std::make_unique<StandInNccl>(0, script);
  EXPECT_THROW(comm::make_nccl_communicator_over(std::move(backend), *host, {.timeout_s = 0}),
               base::Error);
}

}  // namespace
}  // namespace yolohpc::testing
