// Counter-based random numbers: the same key gives the same numbers on any rank and thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace yolohpc::base {

/// What a random number is drawn for. Part of the key, so that draws of different kinds are
/// independent. The values are stored nowhere but fix the streams: append, never renumber.
enum class Purpose : std::uint8_t {
  order = 1,   ///< the permutation of an epoch
  mosaic = 2,  ///< centre and partners
  affine = 3,
  color = 4,
  flip = 5,
  mixup = 6,
  multi_scale = 7,
  init = 8,   ///< model parameters
  synth = 9,  ///< drawn data sets
  test = 10,
};

/// The ten-round Philox 4x32 block function. Source: Salmon et al., SC 2011, "Parallel random
/// numbers: as easy as 1, 2, 3"; check values of Random123.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// A stream of random numbers that depends on its key alone, never on who asks or when.
class Philox {
 public:
  /// \param seed    the run's seed
  /// \param epoch   pass over the data, from 0
  /// \param sample  global sample number in the epoch; below 2^56
  Philox(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, Purpose purpose);

  std::uint32_t next();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in [low, high).
  double uniform(double low, double high);
  /// Uniform integer in [0, bound), without bias. `bound` is at least 1.
  std::uint64_t below(std::uint64_t bound);
  /// Standard normal (Box-Muller).
  double normal();

  /// \name For std::shuffle and the distributions of <random>
  using result_type = std::uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xFFFFFFFFu; }
  result_type operator()() { return next(); }

 private:
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

/// Shuffles in place (Fisher-Yates from the end): part of the sample-order contract, so not
/// std::shuffle, whose result differs between standard libraries.
void shuffle_in_place(std::span<std::uint32_t> values, Philox& random);

}  // namespace yolohpc::base
