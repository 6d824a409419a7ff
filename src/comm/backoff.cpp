#include "backoff.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <sched.h>

namespace yolohpc::comm {
namespace {

constexpr int yields = 200;
constexpr auto shortest_sleep = std::chrono::microseconds(20);
constexpr auto longest_sleep = std::chrono::microseconds(200);

}  // namespace

void Backoff::pause() {
  if (pauses_ < yields) {
    ++pauses_;
    sched_yield();
    return;
  }
  std::this_thread::sleep_for(std::min(longest_sleep, (pauses_ - yields + 1) * shortest_sleep));
  if (pauses_ < 2 * yields) ++pauses_;
}

}  // namespace yolohpc::comm
