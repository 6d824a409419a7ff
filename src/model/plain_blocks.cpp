#include "plain_blocks.hpp"

#include <numeric>

#include <ATen/ATen.h>

#include "conv.hpp"

namespace yolohpc::model {
namespace {

class Conv : public Block {
 public:
  Conv(Scope const& scope, ConvSettings const& settings) : conv_(scope, settings) {}
  at::Tensor forward(std::vector<at::Tensor> const& inputs, Pass const& pass) const override {
    return conv_(inputs[0], pass);
  }

 private:
  ConvNorm conv_;
};

/// Max-pools of growing reach, from one pool applied three times.
class Sppf : public Block {
 public:
  Sppf(Scope const& scope, std::int64_t in, std::int64_t out, std::int64_t kernel)
      : kernel_(kernel),
        cv1_(scope.child("cv1"), {.in_channels = in, .out_channels = in / 2}),
        cv2_(scope.child("cv2"), {.in_channels = 4 * (in / 2), .out_channels = out}) {}

  at::Tensor forward(std::vector<at::Tensor> const& inputs, Pass const& pass) const override {
    auto const x = cv1_(inputs[0], pass);
    auto const once = pool(x);
    auto const twice = pool(once);
    return cv2_(at::cat({x, once, twice, pool(twice)}, 1), pass);
  }

 private:
  at::Tensor pool(at::Tensor const& x) const {
    return at::max_pool2d(x, {kernel_, kernel_}, {1, 1}, {kernel_ / 2, kernel_ / 2});
  }

  std::int64_t kernel_;
  ConvNorm cv1_;
  ConvNorm cv2_;
};

class Upsample : public Block {
 public:
  explicit Upsample(std::int64_t scale) : scale_(scale) {}
  at::Tensor forward(std::vector<at::Tensor> const& inputs, Pass const&) const override {
    auto const& x = inputs[0];
    return at::upsample_nearest2d(x, {x.size(2) * scale_, x.size(3) * scale_});
  }

 private:
  std::int64_t scale_;
};

class Concat : public Block {
 public:
  at::Tensor forward(std::vector<at::Tensor> const& inputs, Pass const&) const override {
    return at::cat(inputs, 1);
  }
};

BuiltBlock make_conv(BlockRequest const& request, std::int64_t groups) {
  auto const input = request.input();
  ConvSettings const settings{.in_channels = input.channels,
                              .out_channels = request.out(),
                              .kernel = request.count("kernel", 1),
                              .stride = request.count("stride", 1),
                              .groups = groups};
  if (settings.kernel % 2 == 0) {
    request.fail("kernel is ", settings.kernel, ". Even kernels shift the map; use an odd one.");
  }
  if (settings.in_channels % groups != 0 || settings.out_channels % groups != 0) {
    request.fail("groups is ", groups, ", which does not divide ", settings.in_channels, " and ",
                 settings.out_channels, " channels.");
  }
  return {std::make_unique<Conv>(request.scope, settings),
          {settings.out_channels, input.stride_px * settings.stride}};
}

}  // namespace

BuiltBlock build_conv(BlockRequest const& request) {
  return make_conv(request, request.count("groups", 1));
}

BuiltBlock build_depthwise_conv(BlockRequest const& request) {
  return make_conv(request, std::gcd(request.input().channels, request.out()));
}

BuiltBlock build_sppf(BlockRequest const& request) {
  auto const input = request.input();
  auto const kernel = request.count("kernel", 5);
  if (kernel % 2 == 0) request.fail("kernel is ", kernel, ". Use an odd one.");
  return {std::make_unique<Sppf>(request.scope, input.channels, request.out(), kernel),
          {request.out(), input.stride_px}};
}

BuiltBlock build_upsample(BlockRequest const& request) {
  auto const input = request.input();
  auto const scale = request.count("scale", 2);
  if (input.stride_px % scale != 0) {
    request.fail("scale is ", scale, ", the input has a stride of ", input.stride_px,
                 " px. Use a divisor of it.");
  }
  return {std::make_unique<Upsample>(scale), {input.channels, input.stride_px / scale}};
}

BuiltBlock build_concat(BlockRequest const& request) {
  Feature output{0, request.inputs.front().stride_px};
  for (auto const& input : request.inputs) {
    if (input.stride_px != output.stride_px) {
      request.fail("inputs have strides of ", output.stride_px, " and ", input.stride_px,
                   " px. Only maps of one stride can be joined.");
    }
    output.channels += input.channels;
  }
  return {std::make_unique<Concat>(), output};
}

}  // namespace yolohpc::model
