#include "backoff.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <sched.h>

namespace yolohpc::comm {
namespace {

constexpr int yields = 200;
constexpr auto shortest_sleep = std::chrono::nanoseconds(20000);
constexpr auto longest_sleep = std::chrono::nanoseconds(200000);
// Short for the first 50 ms or so: a long message moves on only when MPI is polled.
constexpr auto growth = std::chrono::nanoseconds(500);

}  // namespace

void Backoff::pause() {
  if (pauses_ < yields) {
    ++pauses_;
    sched_yield();
    return;
  }
  auto const sleep = std::min(longest_sleep, shortest_sleep + (pauses_ - yields) * growth);
  if (sleep < longest_sleep) ++pauses_;
  std::this_thread::sleep_for(sleep);
}

}  // namespace yolohpc::comm
