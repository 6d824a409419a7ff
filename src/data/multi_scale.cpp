#include "yolohpc/data/multi_scale.hpp"

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/philox.hpp"

namespace yolohpc::data {

void SizeRange::check(int stride) const {
  using base::ExitCode;
  YOLOHPC_CHECK_AS(ExitCode::usage, low >= 1 && low <= high && step >= 1, "--multi-scale is ", low,
                   ":", high, ":", step,
                   " (LO:HI:STEP needs 1 <= LO <= HI and STEP >= 1). Use for example 608:704:32.");
  YOLOHPC_CHECK_AS(ExitCode::usage, low % stride == 0 && (step % stride == 0 || low == high),
                   "--multi-scale is ", low, ":", high, ":", step,
                   " (LO and STEP must be multiples of ", stride,
                   ", the stride of the model). Use for example 608:704:32.");
}

int drawn_size(SizeRange const& range, std::uint64_t seed, std::int64_t step) {
  auto const count = static_cast<std::uint64_t>((range.high - range.low) / range.step + 1);
  base::Philox random(seed, 0, static_cast<std::uint64_t>(step), base::Purpose::multi_scale);
  return range.low + static_cast<int>(random.below(count)) * range.step;
}

}  // namespace yolohpc::data
