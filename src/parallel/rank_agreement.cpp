#include "yolohpc/parallel/rank_agreement.hpp"

#include <ATen/ATen.h>

#include "yolohpc/base/crc32c.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::parallel {
namespace {

std::vector<at::Tensor> floating_point(base::NamedTensors const& buffers) {
  std::vector<at::Tensor> result;
  for (auto const& entry : buffers) {
    if (entry.tensor.is_floating_point()) result.push_back(entry.tensor);
  }
  return result;
}

// A dense tensor is read in the order of its memory, which ranks share, without a copy.
std::int64_t checksum(at::Tensor const& tensor) {
  auto const host = tensor.cpu();
  auto const dense = host.is_non_overlapping_and_dense() ? host : host.contiguous();
  return base::crc32c(dense.data_ptr(), dense.nbytes());
}

}  // namespace

void average_running_statistics(base::NamedTensors const& buffers,
                                comm::Communicator& communicator) {
  auto const tensors = floating_point(buffers);
  if (communicator.size() == 1 || tensors.empty()) return;
  at::NoGradGuard const no_grad;
  std::vector<at::Tensor> rows;
  for (auto const& tensor : tensors) rows.push_back(tensor.reshape({-1}));
  auto const message = at::cat(rows);
  communicator.all_reduce_in_place(message, comm::ReduceOp::sum);
  message.div_(communicator.size());
  std::int64_t begin = 0;
  for (auto const& tensor : tensors) {
    tensor.copy_(message.narrow(0, begin, tensor.numel()).reshape(tensor.sizes()));
    begin += tensor.numel();
  }
}

std::optional<std::string> first_difference_over_ranks(base::NamedTensors const& tensors,
                                                       comm::Communicator& communicator) {
  if (communicator.size() == 1 || tensors.empty()) return std::nullopt;
  std::vector<std::int64_t> values;
  for (auto const& entry : tensors) {
    values.push_back(checksum(entry.tensor));
    values.push_back(-values.back());
  }
  // One reduction gives both ends of the range: the maximum of -x is minus the minimum of x.
  auto const message = at::tensor(values).to(tensors.front().tensor.device());
  communicator.all_reduce_in_place(message, comm::ReduceOp::max);
  auto const largest = message.cpu();
  auto const* ends = largest.const_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (ends[2 * i] != -ends[2 * i + 1]) return tensors[i].name;
  }
  return std::nullopt;
}

void check_equal_over_ranks(base::NamedTensors const& tensors, std::string const& what,
                            comm::Communicator& communicator) {
  auto const difference = first_difference_over_ranks(tensors, communicator);
  YOLOHPC_CHECK(!difference, what, " differ between ranks, first in ", difference.value_or(""),
                ". The ranks no longer train the same model: this is a bug or a failing machine. "
                "Go on from the last checkpoint.");
}

}  // namespace yolohpc::parallel
