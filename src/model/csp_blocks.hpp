// Cross-stage-partial blocks: Bottleneck, C3k, C3k2.
#pragma once

#include "block.hpp"

namespace yolohpc::model {

BuiltBlock build_bottleneck(BlockRequest const& request);
BuiltBlock build_c3k(BlockRequest const& request);
BuiltBlock build_c3k2(BlockRequest const& request);

}  // namespace yolohpc::model
