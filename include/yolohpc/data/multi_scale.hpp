// Multi-scale training: the input size of a step.
#pragma once

#include <cstdint>

namespace yolohpc::data {

/// Sizes low, low + step, ..., at most high; pixels.
struct SizeRange {
  int low = 640;
  int high = 640;
  int step = 32;

  /// \throws Error (usage)  low above high, or a size that is not a multiple of `stride`
  void check(int stride) const;
};

/// The size of step `step`, uniform over the range: the same on all ranks, which therefore stay in
/// balance. For one size per epoch pass the epoch for `step`. Source: spec/data.md section 9,
/// PROJECT.
int drawn_size(SizeRange const& range, std::uint64_t seed, std::int64_t step);

}  // namespace yolohpc::data
