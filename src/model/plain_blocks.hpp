// Blocks without inner structure: Conv, DWConv, SPPF, Upsample, Concat.
#pragma once

#include "block.hpp"

namespace yolohpc::model {

BuiltBlock build_conv(BlockRequest const& request);
BuiltBlock build_depthwise_conv(BlockRequest const& request);
BuiltBlock build_sppf(BlockRequest const& request);
BuiltBlock build_upsample(BlockRequest const& request);
BuiltBlock build_concat(BlockRequest const& request);

}  // namespace yolohpc::model
