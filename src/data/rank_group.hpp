// How ranks agree while packing: a fault of one becomes the fault of all, so that nobody waits for
// ever.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "yolohpc/data/packer.hpp"

namespace yolohpc::data {

/// Runs `action` on this rank; when it throws on any rank, all ranks throw that Error (the lowest
/// rank's).
void run_together(RankGroup const& group, std::function<void()> const& action);

/// Runs `make` on rank 0 and gives its bytes to all. \throws Error  on all ranks, what `make` threw
std::vector<std::byte> bytes_of_root(RankGroup const& group,
                                     std::function<std::vector<std::byte>()> const& make);

/// Part `rank` of `count` things in `size` runs of neighbours: [first, second).
std::pair<std::size_t, std::size_t> share_of(std::size_t count, int rank, int size);

}  // namespace yolohpc::data
