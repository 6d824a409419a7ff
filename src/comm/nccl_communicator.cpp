#include "nccl_communicator.hpp"

#include <algorithm>
#include <utility>

#include "yolohpc/base/error.hpp"

#include "nccl_session.hpp"

namespace yolohpc::comm {
namespace {

using base::ExitCode;

class NcclPending : public Pending {
 public:
  NcclPending(std::shared_ptr<NcclSession> session, NcclBackend::Event event, at::Tensor values)
      : session_(std::move(session)), event_(std::move(event)), values_(std::move(values)) {}

  void wait() override {
    if (waited_) return;
    session_->hold_caller_until(event_, "all_reduce");
    waited_ = true;
  }
  bool done() override { return session_->is_over(event_); }

 private:
  std::shared_ptr<NcclSession> session_;
  NcclBackend::Event event_;
  at::Tensor values_;
  bool waited_ = false;
};

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclSession> session, Communicator& host)
      : Communicator(Place{host.rank(), host.size(), host.host()}),
        session_(std::move(session)),
        host_(host) {}

  char const* backend() const override { return "nccl"; }
  void watch_queued_work(std::string const& what) override { session_->watch_callers_stream(what); }
  void abort() override {
    session_->break_down(base::join("rank ", rank(), " on ", this->host(),
                                    ": NCCL was aborted because the run ends."));
    host_.abort();
  }

  // One small all-reduce, waited for on the host: a network that does not connect the hosts shows
  // here.
  void prove_that_data_moves() {
    auto const one = session_->backend().make_one();
    auto const event = queue("first all_reduce", {one}, [&](NcclBackend& nccl) {
      return nccl.all_reduce(one, ReduceOp::sum);
    });
    session_->wait_on_host(event, "first all_reduce");
    session_->hold_caller_until(event, "first all_reduce");
    auto const sum = one.item().toFloat();
    YOLOHPC_CHECK_AS(ExitCode::communication, sum == static_cast<float>(size()), "rank ", rank(),
                     " on ", host(), ": NCCL summed a one of each of ", size(), " ranks to ", sum,
                     ". NCCL ", session_->backend().version(),
                     " or the network below it is broken; compare the NCCL versions of all hosts.");
  }

 private:
  void check_reachable(at::Tensor const& values, char const* collective) const override {
    YOLOHPC_CHECK(session_->backend().reachable(values), collective, " over NCCL got a tensor on ",
                  values.device(), ", which is not the device of this rank. Copy it there first.");
  }
  NcclBackend::Event queue(char const* collective, std::vector<at::Tensor> owners,
                           std::function<NcclStatus(NcclBackend&)> const& call) {
    return session_->queue(collective, std::move(owners), call);
  }
  // The caller's stream, not the host, waits.
  void run(char const* collective, std::vector<at::Tensor> owners,
           std::function<NcclStatus(NcclBackend&)> const& call) {
    session_->hold_caller_until(queue(collective, std::move(owners), call), collective);
  }

  void do_all_reduce(at::Tensor const& values, ReduceOp op) override {
    run("all_reduce", {values}, [&](NcclBackend& nccl) { return nccl.all_reduce(values, op); });
  }
  std::unique_ptr<Pending> do_all_reduce_async(at::Tensor const& values, ReduceOp op) override {
    auto event = queue("all_reduce", {values},
                       [&](NcclBackend& nccl) { return nccl.all_reduce(values, op); });
    return std::make_unique<NcclPending>(session_, std::move(event), values);
  }
  void do_reduce_scatter(at::Tensor const& part, at::Tensor const& values, ReduceOp op) override {
    run("reduce_scatter", {part, values},
        [&](NcclBackend& nccl) { return nccl.reduce_scatter(part, values, op); });
  }
  void do_all_gather(at::Tensor const& whole, at::Tensor const& part) override {
    run("all_gather", {whole, part},
        [&](NcclBackend& nccl) { return nccl.all_gather(whole, part); });
  }
  void do_broadcast(at::Tensor const& values, int root) override {
    run("broadcast", {values}, [&](NcclBackend& nccl) { return nccl.broadcast(values, root); });
  }
  // Hosts meet; what is queued on devices is none of its business.
  void do_barrier() override { host_.barrier(); }
  std::vector<std::vector<std::byte>> do_gather_bytes(std::span<std::byte const> bytes,
                                                      int root) override {
    return host_.gather_bytes(bytes, root);
  }
  std::vector<std::vector<std::byte>> do_all_gather_bytes(
      std::span<std::byte const> bytes) override {
    return host_.all_gather_bytes(bytes);
  }
  void do_broadcast_bytes(std::vector<std::byte>& bytes, int root) override {
    host_.broadcast_bytes(bytes, root);
  }

  std::shared_ptr<NcclSession> session_;
  Communicator& host_;
};

// The fields in a fixed order, each ended by a zero byte.
std::vector<std::byte> packed(DeviceIdentity const& device) {
  std::string text;
  for (std::string const& field : {device.host, std::to_string(device.index), device.bus_id,
                                   device.uuid, device.visible_devices}) {
    text += field;
    text += '\0';
  }
  auto const* first = reinterpret_cast<std::byte const*>(text.data());
  return {first, first + text.size()};
}

DeviceIdentity unpacked(std::vector<std::byte> const& bytes, int rank) {
  char const* next = reinterpret_cast<char const*>(bytes.data());
  auto const take = [&next] {
    std::string field = next;
    next += field.size() + 1;
    return field;
  };
  DeviceIdentity device;
  device.rank = rank;
  device.host = take();
  device.index = std::stoi(take());
  device.bus_id = take();
  device.uuid = take();
  device.visible_devices = take();
  return device;
}

void check_own_device(NcclBackend& backend, Communicator& host) {
  auto own = backend.identity();
  own.host = host.host();
  std::vector<DeviceIdentity> all;
  for (auto const& bytes : host.all_gather_bytes(packed(own))) {
    all.push_back(unpacked(bytes, static_cast<int>(all.size())));
  }
  check_devices_differ(all);
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator_over(std::unique_ptr<NcclBackend> backend,
                                                          Communicator& host, NcclLimits limits) {
  YOLOHPC_CHECK_AS(ExitCode::usage, limits.timeout_s > 0, "the communication time-out is ",
                   limits.timeout_s, " s; it must be above 0 (--comm-timeout).");
  check_own_device(*backend, host);
  auto const broadcast_id = [&host](NcclBackend::UniqueId& id) {
    std::vector<std::byte> bytes(id.begin(), id.end());
    host.broadcast_bytes(bytes, 0);
    std::copy_n(bytes.begin(), id.size(), id.begin());
  };
  NcclSession::Settings settings{.rank = host.rank(),
                                 .size = host.size(),
                                 .host = host.host(),
                                 .timeout_s = limits.timeout_s,
                                 .grace_s = limits.grace_s,
                                 .watch_interval_s = limits.watch_interval_s,
                                 .last_resort = std::move(limits.last_resort)};
  auto communicator = std::make_unique<NcclCommunicator>(
      std::make_shared<NcclSession>(std::move(backend), std::move(settings), broadcast_id), host);
  communicator->prove_that_data_moves();
  return communicator;
}

}  // namespace yolohpc::comm
