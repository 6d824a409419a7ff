#include "csp_blocks.hpp"

#include <ATen/ATen.h>

#include "conv.hpp"

namespace yolohpc::model {
namespace {

// Source: spec/model.md, section 4.
constexpr std::int64_t bottleneck_kernel = 3;
constexpr std::int64_t c3k_depth = 2;

/// int(channels * expansion): hidden widths are cut, not rounded to a granule.
std::int64_t hidden_width(std::int64_t channels, double expansion) {
  return static_cast<std::int64_t>(static_cast<double>(channels) * expansion);
}

class Bottleneck : public Block {
 public:
  struct Settings {
    std::int64_t in;
    std::int64_t out;
    double expansion;
    bool shortcut = true;
  };
  Bottleneck(Scope const& scope, Settings const& s)
      : adds_(s.shortcut && s.in == s.out),
        cv1_(scope.child("cv1"), {.in_channels = s.in,
                                  .out_channels = hidden_width(s.out, s.expansion),
                                  .kernel = bottleneck_kernel}),
        cv2_(scope.child("cv2"), {.in_channels = hidden_width(s.out, s.expansion),
                                  .out_channels = s.out,
                                  .kernel = bottleneck_kernel}) {}

  at::Tensor forward(std::vector<at::Tensor> const& inputs, Pass const& pass) const override {
    auto const& x = inputs[0];
    auto const y = cv2_(cv1_(x, pass), pass);
    return adds_ ? y + x : y;
  }

 private:
  bool adds_;
  ConvNorm cv1_;
  ConvNorm cv2_;
};

class C3k : public Block {
 public:
  C3k(Scope const& scope, std::int64_t in, std::int64_t out, std::int64_t depth)
      : cv1_(scope.child("cv1"), {.in_channels = in, .out_channels = out / 2}),
        cv2_(scope.child("cv2"), {.in_channels = in, .out_channels = out / 2}),
        cv3_(scope.child("cv3"), {.in_channels = 2 * (out / 2), .out_channels = out}) {
    for (std::int64_t i = 0; i < depth; ++i) {
      m_.emplace_back(scope.child("m").child(i),
                      Bottleneck::Settings{.in = out / 2, .out = out / 2, .expansion = 1});
    }
  }

  at::Tensor forward(std::vector<at::Tensor> const& inputs, Pass const& pass) const override {
    auto deep = cv1_(inputs[0], pass);
    for (auto const& block : m_) deep = block.forward({deep}, pass);
    return cv3_(at::cat({deep, cv2_(inputs[0], pass)}, 1), pass);
  }

 private:
  ConvNorm cv1_;
  ConvNorm cv2_;
  ConvNorm cv3_;
  std::vector<Bottleneck> m_;
};

class C3k2 : public Block {
 public:
  struct Settings {
    std::int64_t in;
    std::int64_t out;
    std::int64_t repeats;
    bool c3k;
    double expansion;
  };
  C3k2(Scope const& scope, Settings const& s)
      : width_(hidden_width(s.out, s.expansion)),
        cv1_(scope.child("cv1"), {.in_channels = s.in, .out_channels = 2 * width_}),
        cv2_(scope.child("cv2"), {.in_channels = (2 + s.repeats) * width_, .out_channels = s.out}) {
    for (std::int64_t i = 0; i < s.repeats; ++i) {
      auto const inner = scope.child("m").child(i);
      if (s.c3k) {
        m_.push_back(std::make_unique<C3k>(inner, width_, width_, c3k_depth));
      } else {
        m_.push_back(std::make_unique<Bottleneck>(
            inner, Bottleneck::Settings{.in = width_, .out = width_, .expansion = 0.5}));
      }
    }
  }

  at::Tensor forward(std::vector<at::Tensor> const& inputs, Pass const& pass) const override {
    auto parts = cv1_(inputs[0], pass).chunk(2, 1);
    for (auto const& block : m_) parts.push_back(block->forward({parts.back()}, pass));
    return cv2_(at::cat(parts, 1), pass);
  }

 private:
  std::int64_t width_;
  ConvNorm cv1_;
  ConvNorm cv2_;
  std::vector<std::unique_ptr<Block>> m_;
};

}  // namespace

BuiltBlock build_bottleneck(BlockRequest const& request) {
  auto const input = request.input();
  Bottleneck::Settings const settings{.in = input.channels,
                                      .out = request.out(),
                                      .expansion = request.fraction("expansion", 0.5),
                                      .shortcut = request.flag("shortcut", true)};
  return {std::make_unique<Bottleneck>(request.scope, settings), {settings.out, input.stride_px}};
}

BuiltBlock build_c3k(BlockRequest const& request) {
  auto const input = request.input();
  return {
      std::make_unique<C3k>(request.scope, input.channels, request.out(), request.layer.repeats),
      {request.out(), input.stride_px}};
}

BuiltBlock build_c3k2(BlockRequest const& request) {
  auto const input = request.input();
  C3k2::Settings const settings{.in = input.channels,
                                .out = request.out(),
                                .repeats = request.layer.repeats,
                                .c3k = request.flag("c3k", false),
                                .expansion = request.fraction("expansion", 0.5)};
  return {std::make_unique<C3k2>(request.scope, settings), {settings.out, input.stride_px}};
}

}  // namespace yolohpc::model
