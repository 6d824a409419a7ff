#include "yolohpc/train/step_exchange.hpp"

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::train {
namespace {

constexpr std::int64_t item_count = 3;
constexpr std::int64_t stop_slot = item_count;
constexpr std::int64_t tail_count = item_count + 1;

std::vector<at::Tensor> floating(base::NamedTensors const& buffers) {
  std::vector<at::Tensor> found;
  for (auto const& buffer : buffers) {
    if (buffer.tensor.is_floating_point()) found.push_back(buffer.tensor);
  }
  return found;
}

}  // namespace

StepExchange::StepExchange(base::NamedTensors const& buffers, comm::Communicator& communicator)
    : communicator_(communicator) {
  auto const tensors = floating(buffers);
  for (auto const& tensor : tensors) statistics_count_ += tensor.numel();
  auto const options = tensors.empty() ? at::TensorOptions().dtype(at::kFloat)
                                       : tensors.front().options().requires_grad(false);
  message_ = at::zeros({statistics_count_ + tail_count}, options);
  statistics_ = message_.narrow(0, 0, statistics_count_);
  tail_ = message_.narrow(0, statistics_count_, tail_count);
  std::int64_t at = 0;
  for (auto tensor : tensors) {
    auto const view = statistics_.narrow(0, at, tensor.numel()).view(tensor.sizes());
    view.copy_(tensor);
    tensor.set_data(view);
    at += tensor.numel();
  }
  last_good_ = statistics_.clone();
}

void StepExchange::begin(Contribution const& mine) {
  assert(pending_ == nullptr);
  tail_.narrow(0, 0, item_count).copy_(mine.items);
  tail_.narrow(0, stop_slot, 1).fill_(mine.wants_to_stop ? 1.0 : 0.0);
  if (communicator_.size() > 1) {
    pending_ = communicator_.all_reduce_async(message_, comm::ReduceOp::sum);
  }
}

void StepExchange::finish() {
  if (pending_ != nullptr) {
    pending_->wait();
    pending_.reset();
    message_.div_(static_cast<double>(communicator_.size()));
  }
  statistics_.copy_(at::where(at::isfinite(statistics_), statistics_, last_good_));
  last_good_.copy_(statistics_);
}

at::Tensor StepExchange::mean_items() const {
  return tail_.narrow(0, 0, item_count).clone();
}

bool StepExchange::anyone_stops() const {
  return tail_.narrow(0, stop_slot, 1).item<float>() > 0;
}

void StepExchange::accept_statistics() {
  last_good_.copy_(statistics_);
}

}  // namespace yolohpc::train
