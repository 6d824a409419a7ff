#include "nccl_session.hpp"

#include <exception>
#include <utility>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"

#include "backoff.hpp"

namespace yolohpc::comm {
namespace {

using base::ExitCode;
using State = NcclStatus::State;

}  // namespace

NcclSession::NcclSession(std::unique_ptr<NcclBackend> backend, Settings settings,
                         std::function<void(NcclBackend::UniqueId&)> const& broadcast_id)
    : backend_(std::move(backend)),
      settings_(std::move(settings)),
      exceptions_at_start_(std::uncaught_exceptions()) {
  start(broadcast_id);
  watcher_ = std::thread([this] { watch(); });
}

NcclSession::~NcclSession() {
  {
    std::lock_guard const lock(end_mutex_);
    ending_ = true;
  }
  end_changed_.notify_all();
  watcher_.join();
  Lock lock(mutex_);
  if (!broken_.empty()) return;
  try {
    if (std::uncaught_exceptions() > exceptions_at_start_) {
      break_down_locked("the run ends by an exception");
      return;
    }
    settle(lock, backend_->begin_finish(), "ncclCommFinalize");
    backend_->destroy();
  } catch (base::Error const&) {
    // settle has aborted NCCL; all results have been used already.
  }
}

std::string NcclSession::who() const {
  return base::join("rank ", settings_.rank, " of ", settings_.size, " on ", settings_.host);
}

std::string NcclSession::late(std::string const& what, double waited_s) const {
  return base::join(who(), ", in ", what, " over NCCL, waited ", waited_s,
                    " s for the other ranks. One of them has died, is stopped or is far behind, or "
                    "the network that NCCL "
                    "chose does not connect the hosts (NCCL_DEBUG=INFO shows it, "
                    "NCCL_SOCKET_IFNAME chooses). If a rank "
                    "may take that long, raise --comm-timeout (",
                    settings_.timeout_s, " s).");
}

void NcclSession::start(std::function<void(NcclBackend::UniqueId&)> const& broadcast_id) {
  Lock lock(mutex_);
  NcclBackend::UniqueId id = {};
  NcclStatus status;
  if (settings_.rank == 0) status = backend_->make_unique_id(id);
  // Nothing to abort yet, and the others learn of it when this rank ends the job.
  YOLOHPC_CHECK_AS(ExitCode::communication, status.state != State::failed, who(), ": ",
                   status.text);
  broadcast_id(id);
  settle(lock, backend_->begin_init(id, settings_.rank, settings_.size), "ncclCommInitRankConfig");
}

void NcclSession::settle(Lock& lock, NcclStatus status, char const* what) {
  base::Stopwatch const watch;
  Backoff backoff;
  while (status.state == State::in_progress) {
    double const waited_s = watch.elapsed_s();
    if (waited_s > settings_.timeout_s) {
      status = {State::failed, late(what, waited_s)};
      break;
    }
    // The watcher may break the session in between.
    lock.unlock();
    backoff.pause();
    lock.lock();
    throw_if_broken(what);
    status = backend_->state();
  }
  if (status.state == State::done) return;
  break_down_locked(base::join(who(), ", in ", what, ": ", status.text));
  throw_if_broken(what);
}

void NcclSession::throw_if_broken(char const* what) {
  if (broken_.empty()) return;
  caller_knows_ = true;
  base::fail(ExitCode::communication, broken_, " (found in ", what, ")");
}

void NcclSession::break_down(std::string const& why) {
  Lock const lock(mutex_);
  break_down_locked(why);
}

void NcclSession::break_down_locked(std::string const& why) {
  if (!broken_.empty()) return;
  broken_ = why;
  broken_since_s_ = base::monotonic_s();
  auto const status = backend_->abort();
  if (status.state == State::failed) broken_ += " Then " + status.text;
}

NcclBackend::Event NcclSession::queue(char const* collective, std::vector<at::Tensor> owners,
                                      std::function<NcclStatus(NcclBackend&)> const& call) {
  Lock lock(mutex_);
  throw_if_broken(collective);
  backend_->follow_caller();
  settle(lock, call(*backend_), collective);
  auto event = backend_->record_own_stream();
  // Captured work begins when the graph is replayed: see watch_callers_stream.
  if (!backend_->caller_captures()) add_under_way({collective, event, std::move(owners)});
  return event;
}

void NcclSession::add_under_way(UnderWay work) {
  if (under_way_.empty()) oldest_since_s_ = base::monotonic_s();
  under_way_.push_back(std::move(work));
}

void NcclSession::hold_caller_until(NcclBackend::Event const& event, char const* collective) {
  {
    Lock const lock(mutex_);
    throw_if_broken(collective);
  }
  backend_->hold_caller_until(event);
}

void NcclSession::wait_on_host(NcclBackend::Event const& event, char const* collective) {
  Backoff backoff;
  while (!backend_->reached(event)) {
    {
      Lock const lock(mutex_);
      throw_if_broken(collective);  // the watcher knows the deadline
    }
    backoff.pause();
  }
}

bool NcclSession::is_over(NcclBackend::Event const& event) {
  {
    Lock const lock(mutex_);
    if (!broken_.empty()) return true;
  }
  return backend_->reached(event);
}

void NcclSession::watch_callers_stream(std::string const& what) {
  Lock const lock(mutex_);
  throw_if_broken(what.c_str());
  if (!backend_->caller_captures()) add_under_way({what, backend_->record_callers_stream(), {}});
}

void NcclSession::watch() {
  auto const interval = std::chrono::duration<double>(settings_.watch_interval_s);
  std::unique_lock end_lock(end_mutex_);
  while (!end_changed_.wait_for(end_lock, interval, [this] { return ending_; })) look();
}

void NcclSession::look() {
  std::string stuck;
  {
    Lock const lock(mutex_, std::chrono::duration<double>(settings_.watch_interval_s));
    if (lock.owns_lock()) {
      locked_out_since_s_ = 0;
      look_at_oldest();
      stuck = stuck_caller();
    } else {
      stuck = locked_out_caller();
    }
  }
  if (stuck.empty() || resorted_) return;
  resorted_ = true;
  if (settings_.last_resort) settings_.last_resort(stuck);
}

void NcclSession::look_at_oldest() {
  if (!broken_.empty()) return;
  while (!under_way_.empty() && backend_->reached(under_way_.front().event)) {
    under_way_.pop_front();
    oldest_since_s_ = base::monotonic_s();
  }
  if (under_way_.empty()) return;
  std::string const& collective = under_way_.front().collective;
  auto const status = backend_->state();
  if (status.state == State::failed) {
    return break_down_locked(base::join(who(), ", in ", collective, ": ", status.text));
  }
  double const waited_s = base::monotonic_s() - oldest_since_s_;
  if (waited_s > settings_.timeout_s) break_down_locked(late(collective, waited_s));
}

std::string NcclSession::stuck_caller() {
  if (broken_.empty() || caller_knows_) return "";
  return base::monotonic_s() - broken_since_s_ < settings_.grace_s ? "" : broken_;
}

std::string NcclSession::locked_out_caller() {
  double const now_s = base::monotonic_s();
  if (locked_out_since_s_ == 0) locked_out_since_s_ = now_s;
  double const held_s = now_s - locked_out_since_s_;
  if (held_s < settings_.timeout_s + settings_.grace_s) return "";
  return base::join(who(), " is held inside one call of NCCL for ", held_s,
                    " s. Look at the first message of each rank, and at NCCL_DEBUG=INFO.");
}

}  // namespace yolohpc::comm
