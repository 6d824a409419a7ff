#include "sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace yolohpc::data {
namespace {

constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t word_at(std::byte const* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return word;
}

}  // namespace

void Sha256::block(std::byte const* bytes) {
  using std::rotr;
  std::array<std::uint32_t, 64> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = word_at(bytes + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    std::uint32_t const s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    std::uint32_t const s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    std::uint32_t const big1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
    std::uint32_t const choice = (e & f) ^ (~e & g);
    std::uint32_t const t1 = h + big1 + choice + round_constants[t] + w[t];
    std::uint32_t const big0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
    std::uint32_t const majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + big0 + majority;
  }
  std::array<std::uint32_t, 8> const last{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += last[i];
}

void Sha256::update(std::span<std::byte const> bytes) {
  if (bytes.empty()) return;
  total_bytes_ += bytes.size();
  if (pending_bytes_ > 0) {
    std::size_t const count = std::min(bytes.size(), pending_.size() - pending_bytes_);
    std::memcpy(pending_.data() + pending_bytes_, bytes.data(), count);
    pending_bytes_ += count;
    bytes = bytes.subspan(count);
    if (pending_bytes_ < pending_.size()) return;
    block(pending_.data());
    pending_bytes_ = 0;
  }
  for (; bytes.size() >= pending_.size(); bytes = bytes.subspan(pending_.size())) {
    block(bytes.data());
  }
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_bytes_ = bytes.size();
}

Sha256Digest Sha256::finish() {
  std::uint64_t const bits = total_bytes_ * 8;
  std::array<std::byte, 72> tail{};
  tail[0] = std::byte{0x80};
  std::size_t const zeros = (119 - pending_bytes_) % 64;  // up to 56 bytes modulo 64
  for (std::size_t i = 0; i < 8; ++i) {
    tail[1 + zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  }
  update(std::span(tail).first(1 + zeros + 8));
  Sha256Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

Sha256Digest sha256(std::span<std::byte const> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string hex_of(Sha256Digest const& digest) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::byte const byte : digest) {
    auto const value = std::to_integer<unsigned>(byte);
    text += {digits[value >> 4], digits[value & 15]};
  }
  return text;
}

}  // namespace yolohpc::data
