// State that ranks must share: running statistics averaged, parameters checked for equality.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "yolohpc/base/named_tensors.hpp"

namespace yolohpc::comm {
class Communicator;
}

namespace yolohpc::parallel {

/// Replaces floating-point buffers (running means and variances) by their mean over the ranks, in
/// one message. Others (counters) are left alone. Every rank passes the same shapes in the same
/// order.
///
/// Each rank's batches are samples of the same data, so the mean of means and the mean of variances
/// are the estimate that one rank with all batches would have kept, up to the variance of the
/// means.
void average_running_statistics(base::NamedTensors const& buffers,
                                comm::Communicator& communicator);

/// The name of the first tensor whose bytes are not the same on all ranks, or nothing. Same answer
/// on every rank; one small message (two 8-byte numbers a tensor, from CRC-32C). Ranks pass the
/// same names.
std::optional<std::string> first_difference_over_ranks(base::NamedTensors const& tensors,
                                                       comm::Communicator& communicator);

/// \throws Error  names `what` and the first differing tensor
void check_equal_over_ranks(base::NamedTensors const& tensors, std::string const& what,
                            comm::Communicator& communicator);

}  // namespace yolohpc::parallel
