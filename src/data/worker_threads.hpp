// A loop over independent items on several threads, watched by the caller.
#pragma once

#include <cstddef>
#include <functional>

namespace yolohpc::data {

/// Calls work(thread, item) for each item in [begin, end) on `threads` threads; items are handed
/// out in order. The caller's thread calls watch(items done) about once a second and after the last
/// (may be empty). \throws  the first exception of `work`; the items that have not begun are then
/// left out
void for_each_on_threads(int threads, std::size_t begin, std::size_t end,
                         std::function<void(std::size_t thread, std::size_t item)> const& work,
                         std::function<void(std::size_t done)> const& watch);

}  // namespace yolohpc::data
