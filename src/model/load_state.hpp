// Matching of named tensors with the entries of a network.
#pragma once

#include <vector>

#include "yolohpc/base/named_tensors.hpp"
#include "yolohpc/model/state.hpp"

namespace yolohpc::model {

/// See Network::load_state.
LoadReport load_entries(std::vector<StateEntry> const& entries, base::NamedTensors const& source,
                        LoadMode mode);

}  // namespace yolohpc::model
