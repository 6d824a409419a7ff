// Starting values of a network's entries.
#pragma once

#include <cstdint>
#include <vector>

#include "yolohpc/model/state.hpp"

namespace yolohpc::model {

/// Convolution weights uniform on +-1 / sqrt(fan_in), norms 1 and 0, statistics 0 and 1, counts 0.
/// Biases of convolutions are left to the head.
///
/// Entry k draws from the stream (seed, epoch 0, sample k, Purpose::init), row-major.
void initialise_entries(std::vector<StateEntry> const& entries, std::uint64_t seed);

}  // namespace yolohpc::model
