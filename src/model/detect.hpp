// Detect: the anchor-free head with a box and a class branch for each level.
#pragma once

#include "block.hpp"

namespace yolohpc::model {

std::unique_ptr<Head> build_detect(BlockRequest const& request);

}  // namespace yolohpc::model
