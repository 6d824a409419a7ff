// Label rows of a fixture as padded targets.
#pragma once

#include <ATen/ATen.h>

#include "yolohpc/loss/criterion.hpp"

namespace yolohpc::testing {

/// \param image  (N) image of each row, not decreasing; \param label  (N); \param boxes  (N, 4) cx
/// cy w h \param rows   padded rows per image, at least as many as any image has
inline loss::Targets make_targets(at::Tensor const& image, at::Tensor const& label,
                                  at::Tensor const& boxes, std::int64_t images, std::int64_t rows) {
  loss::Targets targets{at::zeros({images, rows, 4}), at::zeros({images, rows}, at::kLong),
                        at::zeros({images, rows}, at::kBool)};
  std::vector<std::int64_t> used(static_cast<std::size_t>(images), 0);
  for (std::int64_t i = 0; i < boxes.size(0); ++i) {
    auto const b = image[i].item<std::int64_t>();
    auto const row = used[static_cast<std::size_t>(b)]++;
    targets.boxes[b][row].copy_(boxes[i]);
    targets.labels[b][row].fill_(label[i].item<std::int64_t>());
    targets.valid[b][row].fill_(true);
  }
  return targets;
}

}  // namespace yolohpc::testing
