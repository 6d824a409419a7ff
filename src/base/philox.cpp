#include "yolohpc/base/philox.hpp"

#include <cmath>
#include <numbers>
#include <utility>

namespace yolohpc::base {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c,
                                        std::array<std::uint32_t, 2> k) {
  // Multipliers and Weyl increments of the paper's table 2.
  constexpr std::uint64_t multiplier_0 = 0xD2511F53;
  constexpr std::uint64_t multiplier_1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl_0 = 0x9E3779B9;
  constexpr std::uint32_t weyl_1 = 0xBB67AE85;
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    std::uint64_t const p0 = multiplier_0 * c[0];
    std::uint64_t const p1 = multiplier_1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += weyl_0;
    k[1] += weyl_1;
  }
  return c;
}

Philox::Philox(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, Purpose purpose)
    : counter_{0, static_cast<std::uint32_t>(sample), epoch,
               static_cast<std::uint32_t>(purpose) << 24 |
                   static_cast<std::uint32_t>((sample >> 32) & 0xFFFFFF)},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

std::uint32_t Philox::next() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

double Philox::uniform() {
  constexpr double scale = 1.0 / 9007199254740992.0;  // 2^-53
  std::uint64_t const high = next() >> 5;
  std::uint64_t const low = next() >> 6;
  return static_cast<double>(high << 26 | low) * scale;
}

double Philox::uniform(double low, double high) {
  return low + (high - low) * uniform();
}

std::uint64_t Philox::below(std::uint64_t bound) {
  // Rejects the short last interval, so that every value is equally likely.
  std::uint64_t const limit = ~std::uint64_t{0} - (~std::uint64_t{0} % bound + 1) % bound;
  for (;;) {
    std::uint64_t const high = next();
    std::uint64_t const draw = high << 32 | next();
    if (draw <= limit) return draw % bound;
  }
}

double Philox::normal() {
  double const radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

void shuffle_in_place(std::span<std::uint32_t> values, Philox& random) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[random.below(left)]);
  }
}

}  // namespace yolohpc::base
