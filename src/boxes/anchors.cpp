#include "yolohpc/boxes/anchors.hpp"

#include <ATen/ATen.h>

namespace yolohpc::boxes {

AnchorPoints make_anchor_points(std::vector<GridLevel> const& levels, at::Device device) {
  auto const options = at::TensorOptions().dtype(at::kFloat).device(device);
  constexpr double centre = 0.5;
  std::vector<at::Tensor> points;
  std::vector<at::Tensor> strides;
  for (auto const& level : levels) {
    auto const x = at::arange(level.width, options).add_(centre).unsqueeze(0);
    auto const y = at::arange(level.height, options).add_(centre).unsqueeze(1);
    points.push_back(at::stack({x.expand({level.height, level.width}).flatten(),
                                y.expand({level.height, level.width}).flatten()}));
    strides.push_back(
        at::full({level.height * level.width}, static_cast<double>(level.stride_px), options));
  }
  return {at::cat(points, 1), at::cat(strides)};
}

}  // namespace yolohpc::boxes
