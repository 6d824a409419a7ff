#include "watchdog.hpp"

#include <chrono>
#include <utility>

namespace yolohpc::comm {

Watchdog::Watchdog(double timeout_s, std::function<void()> on_expiry)
    : thread_([this, timeout_s, expired = std::move(on_expiry)] {
        std::unique_lock lock(mutex_);
        auto const limit = std::chrono::duration<double>(timeout_s);
        if (!disarm_.wait_for(lock, limit, [this] { return disarmed_; })) expired();
      }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard const lock(mutex_);
    disarmed_ = true;
  }
  disarm_.notify_all();
  thread_.join();
}

}  // namespace yolohpc::comm
