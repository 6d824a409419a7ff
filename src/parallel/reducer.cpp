#include "yolohpc/parallel/reducer.hpp"

#include <memory>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::parallel {

class Reducer::State {
 public:
  State(FlatBuffers& flat, comm::Communicator& communicator, ReducerSettings settings);
  ~State();

  void begin_micro_batch(MicroBatch which);
  ReduceReport finish();
  /// Called by autograd when the gradient of slot `index` is in the buffer.
  void on_gradient(std::size_t index);

 private:
  bool communicates() const { return communicator_.size() > 1; }
  void arm();
  void launch_complete_buckets();
  void launch(std::size_t bucket);

  FlatBuffers& flat_;
  comm::Communicator& communicator_;
  ReducerSettings settings_;
  bool is_last_begun_ = false;
  std::vector<std::int64_t> missing_;  ///< per bucket: parameters whose gradient is not there yet
  std::vector<std::unique_ptr<comm::Pending>> pending_;  ///< launched, in bucket order
  ReduceReport report_;
};

namespace {

template <typename State>
class CountDown : public torch::autograd::PostAccumulateGradHook {
 public:
  CountDown(State& state, std::size_t index) : state_(state), index_(index) {}
  void operator()(at::Tensor const&) override { state_.on_gradient(index_); }

 private:
  State& state_;
  std::size_t index_;
};

}  // namespace

Reducer::State::State(FlatBuffers& flat, comm::Communicator& communicator, ReducerSettings settings)
    : flat_(flat), communicator_(communicator), settings_(settings) {
  if (!communicates()) return;
  for (std::size_t index = 0; index < flat.slots().size(); ++index) {
    YOLOHPC_CHECK(!torch::autograd::impl::post_acc_grad_hooks(flat.tensors()[index]), "parameter ",
                  flat.slots()[index].name,
                  " has a gradient hook already. One reducer at a time can serve it.");
  }
  for (std::size_t index = 0; index < flat.slots().size(); ++index) {
    torch::autograd::impl::set_post_acc_grad_hooks(
        flat.tensors()[index], std::make_unique<CountDown<State>>(*this, index));
  }
}

Reducer::State::~State() {
  if (!communicates()) return;
  for (auto const& tensor : flat_.tensors()) {
    torch::autograd::impl::set_post_acc_grad_hooks(tensor, nullptr);
  }
}

void Reducer::State::begin_micro_batch(MicroBatch which) {
  YOLOHPC_CHECK(!is_last_begun_,
                "a micro-batch is begun after the last one of its step. Call finish() in between.");
  if (which == MicroBatch::last) arm();
}

void Reducer::State::arm() {
  is_last_begun_ = true;
  report_ = {};
  pending_.clear();
  missing_.assign(flat_.buckets().size(), 0);
  for (auto const& slot : flat_.slots()) ++missing_[static_cast<std::size_t>(slot.bucket)];
}

void Reducer::State::on_gradient(std::size_t index) {
  if (!is_last_begun_) return;
  auto const& slot = flat_.slots()[index];
  auto const bucket = static_cast<std::size_t>(slot.bucket);
  YOLOHPC_CHECK(missing_[bucket] > 0 && bucket >= pending_.size(), "the gradient of ", slot.name,
                " changed after its bucket was complete. Run one backward pass per micro-batch.");
  --missing_[bucket];
  if (settings_.overlap == Overlap::on) launch_complete_buckets();
}

void Reducer::State::launch_complete_buckets() {
  while (pending_.size() < missing_.size() && missing_[pending_.size()] == 0) {
    launch(pending_.size());
    ++report_.buckets_in_backward;
  }
}

void Reducer::State::launch(std::size_t bucket) {
  auto const gradients = flat_.slice(flat_.gradients(), flat_.buckets()[bucket]);
  pending_.push_back(communicator_.all_reduce_async(gradients, comm::ReduceOp::sum));
  report_.bytes += static_cast<std::int64_t>(gradients.nbytes());
}

ReduceReport Reducer::State::finish() {
  YOLOHPC_CHECK(is_last_begun_, "finish() without begin_micro_batch(MicroBatch::last).");
  is_last_begun_ = false;
  flat_.check_gradients_in_place();
  if (!communicates()) return report_;
  while (pending_.size() < flat_.buckets().size()) launch(pending_.size());
  base::Stopwatch const watch;
  for (auto& reduction : pending_) reduction->wait();
  report_.exposed_wait_s = watch.elapsed_s();
  pending_.clear();
  if (settings_.rule == GradientRule::average) flat_.gradients().div_(communicator_.size());
  return report_;
}

Reducer::Reducer(FlatBuffers& flat, comm::Communicator& communicator, ReducerSettings settings)
    : state_(std::make_unique<State>(flat, communicator, settings)) {}

Reducer::~Reducer() = default;

void Reducer::begin_micro_batch(MicroBatch which) {
  state_->begin_micro_batch(which);
}

ReduceReport Reducer::finish() {
  return state_->finish();
}

}  // namespace yolohpc::parallel
