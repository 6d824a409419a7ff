// Watchdog: a limit for calls that block and know no deadline themselves.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace yolohpc::comm {

/// Runs `on_expiry` in a thread of its own, unless destroyed within `timeout_s` seconds.
class Watchdog {
 public:
  Watchdog(double timeout_s, std::function<void()> on_expiry);
  ~Watchdog();
  Watchdog(Watchdog const&) = delete;
  Watchdog& operator=(Watchdog const&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable disarm_;
  bool disarmed_ = false;
  std::thread thread_;
};

}  // namespace yolohpc::comm
