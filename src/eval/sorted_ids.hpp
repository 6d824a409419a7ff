// Ids as a sorted set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace yolohpc::eval {

inline std::vector<std::int64_t> sorted_ids(std::span<std::int64_t const> ids) {
  std::vector<std::int64_t> result(ids.begin(), ids.end());
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace yolohpc::eval
