#include <utility>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::comm {
namespace {

class Over : public Pending {
 public:
  void wait() override {}
  bool done() override { return true; }
};

// Every collective of one rank is the identity.
class SingleCommunicator : public Communicator {
 public:
  SingleCommunicator() : Communicator(Place{.rank = 0, .size = 1, .host = "this host"}) {}

  char const* backend() const override { return "single"; }
  void abort() override { aborted_ = true; }

 private:
  void check_reachable(at::Tensor const&, char const* collective) const override {
    check_going_on(collective);
  }
  void do_all_reduce(at::Tensor const&, ReduceOp) override {}
  std::unique_ptr<Pending> do_all_reduce_async(at::Tensor const&, ReduceOp) override {
    return std::make_unique<Over>();
  }
  void do_reduce_scatter(at::Tensor const& part, at::Tensor const& values, ReduceOp) override {
    part.copy_(values);
  }
  void do_all_gather(at::Tensor const& whole, at::Tensor const& part) override {
    whole.copy_(part);
  }
  void do_broadcast(at::Tensor const&, int) override {}
  void do_barrier() override { check_going_on("barrier"); }
  std::vector<std::vector<std::byte>> do_gather_bytes(std::span<std::byte const> bytes,
                                                      int) override {
    return do_all_gather_bytes(bytes);
  }
  std::vector<std::vector<std::byte>> do_all_gather_bytes(
      std::span<std::byte const> bytes) override {
    check_going_on("gather_bytes");
    return {{bytes.begin(), bytes.end()}};
  }
  void do_broadcast_bytes(std::vector<std::byte>&, int) override {
    check_going_on("broadcast_bytes");
  }

  void check_going_on(char const* collective) const {
    YOLOHPC_CHECK_AS(base::ExitCode::communication, !aborted_, collective,
                     " was called after the communicator was aborted.");
  }

  std::atomic<bool> aborted_ = false;
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace yolohpc::comm
