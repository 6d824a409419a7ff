// Curves given by samples: interpolation and even grids, with the rules of NumPy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace yolohpc::eval {

/// Entry i of `count` evenly spaced numbers from 0 to 1, as numpy.linspace forms them.
inline double grid_point(int i, int count) {
  return i == count - 1 ? 1.0 : i * (1.0 / (count - 1));
}

/// Linear interpolation of `values` at ascending `places`, like numpy.interp: of equal places the
/// last one holds, beyond the ends the end values. `places` is not empty.
inline double interpolate(double x, std::vector<double> const& places,
                          std::vector<double> const& values) {
  auto const above = std::upper_bound(places.begin(), places.end(), x);
  if (above == places.begin()) return values.front();
  if (above == places.end()) return values.back();
  auto const j = static_cast<std::size_t>(above - places.begin()) - 1;
  if (places[j] == x) return values[j];
  double const slope = (values[j + 1] - values[j]) / (places[j + 1] - places[j]);
  return slope * (x - places[j]) + values[j];
}

}  // namespace yolohpc::eval
