#include "yolohpc/data/batch.hpp"

#include <algorithm>
#include <bit>

namespace yolohpc::data {

std::int64_t padded_box_count(std::int64_t count) {
  constexpr std::int64_t smallest = 8;
  auto const at_least = static_cast<std::uint64_t>(std::max(count, smallest));
  return static_cast<std::int64_t>(std::bit_ceil(at_least));
}

}  // namespace yolohpc::data
