// The orthogonalisation of MuSGD: five Newton-Schulz steps in bfloat16.
#pragma once

#include <ATen/core/Tensor.h>

namespace yolohpc::optim {

/// Pushes the singular values of each matrix towards 1 (to about 0.7 ... 1.2).
///
///     X = u / (|u|_F + 1e-7);  five times:  P = X X^T;  Q = b P + c P P;  X = a X + Q X
///
/// with (a, b, c) = (3.4445, -4.7750, 2.0315), on the transposed matrix where it has more rows than
/// columns. Norm, quotient and P are rounded to bfloat16; Q and the last X are accumulated in
/// float32 and rounded once. \param updates  (N, rows, columns) float32, N matrices of one shape
/// \return         (N, rows, columns) float32 whose values are bfloat16 numbers
/// Source: Jordan et al., Muon; rounding as measured in spec/optim.md, section 3.
at::Tensor orthogonalise(at::Tensor const& updates);

}  // namespace yolohpc::optim
