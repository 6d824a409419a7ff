#include "worker_threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace yolohpc::data {
namespace {

struct SharedLoop {
  std::atomic<std::size_t> next;
  std::atomic<std::size_t> done{0};
  std::mutex mutex;
  std::condition_variable finished;
  std::size_t running;
  std::exception_ptr fault;
};

void run(SharedLoop& loop, std::size_t thread, std::size_t end,
         std::function<void(std::size_t, std::size_t)> const& work) {
  std::exception_ptr fault;
  try {
    for (std::size_t item; (item = loop.next++) < end; ++loop.done) work(thread, item);
  } catch (...) {
    fault = std::current_exception();
    loop.next = end;
  }
  std::lock_guard const guard(loop.mutex);
  if (fault && !loop.fault) loop.fault = fault;
  --loop.running;
  loop.finished.notify_one();
}

}  // namespace

void for_each_on_threads(int threads, std::size_t begin, std::size_t end,
                         std::function<void(std::size_t, std::size_t)> const& work,
                         std::function<void(std::size_t)> const& watch) {
  std::size_t const count = std::min(static_cast<std::size_t>(std::max(threads, 1)), end - begin);
  SharedLoop loop{.next = begin, .mutex = {}, .finished = {}, .running = count, .fault = nullptr};
  std::vector<std::jthread> workers;
  for (std::size_t thread = 0; thread < count; ++thread) {
    workers.emplace_back([&loop, thread, end, &work] { run(loop, thread, end, work); });
  }
  std::unique_lock lock(loop.mutex);
  while (
      !loop.finished.wait_for(lock, std::chrono::seconds(1), [&] { return loop.running == 0; })) {
    lock.unlock();
    if (watch) watch(loop.done);
    lock.lock();
  }
  lock.unlock();
  workers.clear();
  if (loop.fault) std::rethrow_exception(loop.fault);
  if (watch) watch(loop.done);
}

}  // namespace yolohpc::data
