// Position-sensitive attention: C2PSA.
#pragma once

#include "block.hpp"

namespace yolohpc::model {

BuiltBlock build_c2psa(BlockRequest const& request);

}  // namespace yolohpc::model
