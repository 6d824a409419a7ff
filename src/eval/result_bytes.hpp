// The numbers of a validation as bytes, for the broadcast to all ranks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "yolohpc/eval/inference.hpp"

namespace yolohpc::eval {

/// COCO numbers, metrics, losses and counts; not what is of one rank only.
std::vector<std::byte> to_bytes(InferenceResult const& result);
InferenceResult from_bytes(std::span<std::byte const> bytes);

}  // namespace yolohpc::eval
