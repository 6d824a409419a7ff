#include "orthogonalise.hpp"

#include <ATen/ATen.h>

namespace yolohpc::optim {

at::Tensor orthogonalise(at::Tensor const& updates) {
  constexpr double a = 3.4445;
  constexpr double b = -4.7750;
  constexpr double c = 2.0315;
  constexpr double least_norm = 1e-7;
  constexpr int iterations = 5;

  // A GPU multiplies bfloat16 matrices, accumulates in float32 and rounds the result once. On the
  // CPU the same numbers come from float32 arithmetic on rounded values: products of two bfloat16
  // numbers are exact there, and only few processors multiply bfloat16 faster.
  auto const carrier = updates.is_cuda() ? at::kBFloat16 : at::kFloat;
  auto const rounded = [carrier](at::Tensor const& t) { return t.to(at::kBFloat16).to(carrier); };

  bool const is_tall = updates.size(1) > updates.size(2);
  at::Tensor x = rounded(is_tall ? updates.transpose(1, 2).contiguous() : updates);
  auto const norm = rounded(at::linalg_vector_norm(x, 2, at::IntArrayRef({1, 2}), true));
  x = rounded(x / rounded(norm + least_norm));
  for (int i = 0; i < iterations; ++i) {
    auto const p = rounded(at::bmm(x, x.transpose(1, 2)));
    auto const q = rounded(at::baddbmm(p, p, p, b, c));
    x = rounded(at::baddbmm(x, q, x, a, 1));
  }
  x = x.to(at::kFloat);
  return is_tall ? x.transpose(1, 2) : x;
}

}  // namespace yolohpc::optim
