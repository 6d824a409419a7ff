// A LabelSource as bytes, to send from the rank that read it to the others.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "yolohpc/data/label_source.hpp"

namespace yolohpc::data {

std::vector<std::byte> bytes_of_labels(LabelSource const& source);
LabelSource labels_of_bytes(std::span<std::byte const> bytes);

}  // namespace yolohpc::data
