// NcclSession: one NCCL communicator from start to end, with the thread that watches it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "nccl_backend.hpp"

namespace yolohpc::comm {

/// Starts NCCL by a deadline, queues collectives, and watches them.
///
/// The thread looks at the oldest collective under way and at NCCL's asynchronous error. On an
/// error, or when that collective is not over `timeout_s` after it could begin, the thread aborts
/// NCCL, which lets the streams go on, and every later call throws what was found. If the caller
/// makes no call within `grace_s`, or is held inside one call of NCCL for timeout_s + grace_s, it
/// is taken to be stuck, and `last_resort` is called once.
class NcclSession {
 public:
  struct Settings {
    int rank = 0;
    int size = 1;
    std::string host;
    double timeout_s = 600;
    double grace_s = 10;
    double watch_interval_s = 0.1;
    std::function<void(std::string const& text)> last_resort = {};
  };

  /// `broadcast_id` hands the id of rank 0 to all ranks, over another communicator.
  NcclSession(std::unique_ptr<NcclBackend> backend, Settings settings,
              std::function<void(NcclBackend::UniqueId&)> const& broadcast_id);
  /// Ends NCCL in good order when nothing is under way and no exception is on its way, else aborts
  /// it.
  ~NcclSession();
  NcclSession(NcclSession const&) = delete;
  NcclSession& operator=(NcclSession const&) = delete;

  /// Queues what `call` queues on the own stream, after the work on the caller's stream.
  /// \param owners  tensors that must live until the collective is over
  NcclBackend::Event queue(char const* collective, std::vector<at::Tensor> owners,
                           std::function<NcclStatus(NcclBackend&)> const& call);
  /// Later work on the caller's stream waits for `event`.
  void hold_caller_until(NcclBackend::Event const& event, char const* collective);
  /// Blocks the host, by the deadline.
  void wait_on_host(NcclBackend::Event const& event, char const* collective);
  bool is_over(NcclBackend::Event const& event);
  /// Puts the work on the caller's stream under the deadline.
  void watch_callers_stream(std::string const& what);
  /// Aborts NCCL; every later call throws `why`.
  void break_down(std::string const& why);

  NcclBackend& backend() { return *backend_; }

 private:
  using Lock = std::unique_lock<std::timed_mutex>;
  struct UnderWay {
    std::string collective;
    NcclBackend::Event event;
    std::vector<at::Tensor> owners;
  };

  void start(std::function<void(NcclBackend::UniqueId&)> const& broadcast_id);
  /// Polls until the call that gave `status` is done; throws past the deadline.
  void settle(Lock& lock, NcclStatus status, char const* what);
  void throw_if_broken(char const* what);
  void break_down_locked(std::string const& why);
  void add_under_way(UnderWay work);
  void watch();
  void look();
  void look_at_oldest();
  std::string stuck_caller();
  std::string locked_out_caller();
  std::string who() const;
  std::string late(std::string const& what, double waited_s) const;

  std::unique_ptr<NcclBackend> backend_;
  Settings settings_;
  int exceptions_at_start_;

  std::timed_mutex mutex_;  // guards NCCL's handle and all below
  std::deque<UnderWay> under_way_;
  double oldest_since_s_ = 0;  // when the front of under_way_ could begin
  std::string broken_;         // why, empty while all is well
  double broken_since_s_ = 0;
  bool caller_knows_ = false;

  // Used by the watching thread alone.
  double locked_out_since_s_ = 0;  // 0: it got the lock
  bool resorted_ = false;

  std::mutex end_mutex_;
  std::condition_variable end_changed_;
  bool ending_ = false;
  std::thread watcher_;
};

}  // namespace yolohpc::comm
