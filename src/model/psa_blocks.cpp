#include "psa_blocks.hpp"

#include <cmath>

#include <ATen/ATen.h>

#include "conv.hpp"

namespace yolohpc::model {
namespace {

constexpr std::int64_t channels_per_head = 64;  // spec/model.md, section 4, C2PSA

/// Self-attention over the cells of a map, plus a depthwise convolution of the values.
class Attention {
 public:
  Attention(Scope const& scope, std::int64_t channels, std::int64_t heads)
      : heads_(heads),
        value_width_(channels / heads),
        key_width_(value_width_ / 2),
        qkv_(scope.child("qkv"), {.in_channels = channels,
                                  .out_channels = channels + 2 * key_width_ * heads,
                                  .activation = Activation::none}),
        proj_(scope.child("proj"),
              {.in_channels = channels, .out_channels = channels, .activation = Activation::none}),
        pe_(scope.child("pe"), {.in_channels = channels,
                                .out_channels = channels,
                                .kernel = 3,
                                .groups = channels,
                                .activation = Activation::none}) {}

  at::Tensor operator()(at::Tensor const& x, Pass const& pass) const {
    auto const layout = x.suggest_memory_format();
    // (B, heads, 2 key + value, H W): the channels of one head lie together, q k v inside it.
    auto const parts = qkv_(x, pass)
                           .flatten(2)
                           .unflatten(1, {heads_, 2 * key_width_ + value_width_})
                           .split_with_sizes({key_width_, key_width_, value_width_}, 2);
    auto const& value = parts[2];
    auto const query = parts[0] * (1 / std::sqrt(static_cast<double>(key_width_)));
    auto const weights = at::matmul(query.transpose(2, 3), parts[1]).softmax(-1);
    auto const attended = at::matmul(value, weights.transpose(2, 3));
    auto const local = pe_(value.reshape(x.sizes()).contiguous(layout), pass);
    return proj_(local + attended.reshape(x.sizes()), pass);
  }

 private:
  std::int64_t heads_;
  std::int64_t value_width_;
  std::int64_t key_width_;
  ConvNorm qkv_;
  ConvNorm proj_;
  ConvNorm pe_;
};

class PsaBlock {
 public:
  PsaBlock(Scope const& scope, std::int64_t channels, std::int64_t heads)
      : attn_(scope.child("attn"), channels, heads),
        ffn0_(scope.child("ffn").child("0"),
              {.in_channels = channels, .out_channels = 2 * channels}),
        ffn1_(scope.child("ffn").child("1"), {.in_channels = 2 * channels,
                                              .out_channels = channels,
                                              .activation = Activation::none}) {}

  at::Tensor operator()(at::Tensor const& input, Pass const& pass) const {
    auto const x = input + attn_(input, pass);
    return x + ffn1_(ffn0_(x, pass), pass);
  }

 private:
  Attention attn_;
  ConvNorm ffn0_;
  ConvNorm ffn1_;
};

class C2psa : public Block {
 public:
  C2psa(Scope const& scope, std::int64_t channels, std::int64_t repeats)
      : cv1_(scope.child("cv1"), {.in_channels = channels, .out_channels = 2 * (channels / 2)}),
        cv2_(scope.child("cv2"), {.in_channels = 2 * (channels / 2), .out_channels = channels}) {
    auto const half = channels / 2;
    auto const heads = std::max<std::int64_t>(half / channels_per_head, 1);
    for (std::int64_t i = 0; i < repeats; ++i) {
      m_.emplace_back(scope.child("m").child(i), half, heads);
    }
  }

  at::Tensor forward(std::vector<at::Tensor> const& inputs, Pass const& pass) const override {
    auto parts = cv1_(inputs[0], pass).chunk(2, 1);
    for (auto const& block : m_) parts[1] = block(parts[1], pass);
    return cv2_(at::cat(parts, 1), pass);
  }

 private:
  ConvNorm cv1_;
  ConvNorm cv2_;
  std::vector<PsaBlock> m_;
};

}  // namespace

BuiltBlock build_c2psa(BlockRequest const& request) {
  auto const input = request.input();
  auto const half = input.channels / 2;
  auto const heads = std::max<std::int64_t>(half / channels_per_head, 1);
  if (request.out() != input.channels) {
    request.fail("out is ", request.out(), ", the input has ", input.channels,
                 " channels. Make them equal.");
  }
  if (half % heads != 0 || half / heads < 2) {
    request.fail("half of ", input.channels, " channels does not split into ", heads,
                 " heads. Use a multiple of ", 2 * channels_per_head, ".");
  }
  return {std::make_unique<C2psa>(request.scope, input.channels, request.layer.repeats), input};
}

}  // namespace yolohpc::model
