// Waiting: adds the time of its own life to a counter.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "yolohpc/base/clock.hpp"

namespace yolohpc::comm {

class Waiting {
 public:
  explicit Waiting(std::atomic<std::int64_t>& nanoseconds) : nanoseconds_(nanoseconds) {}
  ~Waiting() {
    constexpr double nanoseconds_per_second = 1e9;
    nanoseconds_ += static_cast<std::int64_t>(watch_.elapsed_s() * nanoseconds_per_second);
  }
  Waiting(Waiting const&) = delete;
  Waiting& operator=(Waiting const&) = delete;

 private:
  std::atomic<std::int64_t>& nanoseconds_;
  base::Stopwatch watch_;
};

}  // namespace yolohpc::comm
