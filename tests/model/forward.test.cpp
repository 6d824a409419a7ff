// The forward pass on formula weights, layer by layer, against stored numbers.

#include <map>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/fixture.hpp"

namespace yolohpc::model {
namespace {

using nlohmann::json;
using testing::Tolerance;

void expect_statistics(at::Tensor const& got, json const& expected, Tolerance const& tolerance,
                       std::string const& what) {
  ASSERT_EQ(got.sizes().vec(), expected["shape"].get<std::vector<std::int64_t>>()) << what;
  auto const flat = got.contiguous().flatten();
  auto const exact = flat.to(at::kDouble);
  testing::expect_near(exact.mean().item<double>(), expected["mean"], tolerance, what + " mean");
  testing::expect_near(exact.std(false).item<double>(), expected["std"], tolerance, what + " std");
  for (std::size_t i = 0; i < expected["sample"].size(); ++i) {
    auto const index = expected["sample_index"][i].get<std::int64_t>();
    testing::expect_near(flat[index].item<double>(), expected["sample"][i], tolerance,
                         what + " element " + std::to_string(index));
  }
}

struct Fixture {
  explicit Fixture(std::string const& scale)
      : meta(testing::golden_json("forward_" + scale + ".json")),
        tensors(testing::golden_tensors("forward_" + scale + ".safetensors").tensors),
        network(load_graph("yolo11" + scale), {meta["nc"].get<std::int64_t>()}) {
    auto const seed = meta["seed"].get<std::uint32_t>();
    testing::load_formula(network, seed);
    network.set_training(false);
    image =
        testing::formula_image("image", meta["input_shape"].get<std::vector<std::int64_t>>(), seed);
  }
  Tolerance tolerance(char const* name) const {
    return testing::parse_tolerance(meta["tolerance"][name]);
  }
  at::Tensor tensor(char const* name) const { return base::find_tensor(tensors, name); }

  json meta;
  base::NamedTensors tensors;
  Network network;
  at::Tensor image;
};

// The formula fill arrives where it belongs: sums of all entries together and, for n, of each.
void expect_weights(Fixture& fixture) {
  double sum = 0;
  for (auto const& [name, tensor] : fixture.network.state()) {
    auto const exact = tensor.detach().to(at::kDouble).flatten();
    sum += exact.sum().item<double>();
    if (!fixture.meta["weight_check"].is_object()) continue;
    auto const& expected = fixture.meta["weight_check"].at(name);
    testing::expect_near(exact.sum().item<double>(), expected[0], {1e-12, 1e-9}, name + " sum");
    EXPECT_EQ(exact[0].item<double>(), expected[1].get<double>()) << name;
    EXPECT_EQ(exact[-1].item<double>(), expected[2].get<double>()) << name;
  }
  // The sum of the whole set cancels to about a tenth of its terms.
  testing::expect_near(sum, fixture.meta["weights_total_sum"], {1e-9, 0}, "weights");
}

class Forward : public ::testing::TestWithParam<std::string> {};

TEST_P(Forward, EqualsTheFixtureInEveryLayer) {
  at::NoGradGuard const no_grad;
  Fixture fixture(GetParam());
  expect_weights(fixture);
  auto const& layers = fixture.meta["layers"];
  std::size_t seen = 0;
  auto const output = fixture.network.forward(fixture.image, [&](int layer, at::Tensor const& map) {
    auto const number = std::to_string(layer);
    expect_statistics(map, layers.at(number), fixture.tolerance("layers"), "layer " + number);
    ++seen;
  });
  EXPECT_EQ(seen, layers.size());
  auto const raw = fixture.tolerance("raw_head");
  testing::expect_close(output.boxes, fixture.tensor("boxes"), raw.relative, raw.absolute, "boxes");
  testing::expect_close(output.scores, fixture.tensor("scores"), raw.relative, raw.absolute,
                        "scores");
}

INSTANTIATE_TEST_SUITE_P(Scales, Forward, ::testing::Values("n", "s", "m", "l", "x"));

// Catches a wrong anchor order, stride, or corner instead of centre form.
TEST(Decode, EqualsTheFixture) {
  at::NoGradGuard const no_grad;
  Fixture fixture("n");
  auto const decoded = decode(fixture.network.forward(fixture.image));
  auto const expected = fixture.tensor("decoded");
  auto const classes = expected.size(1) - 4;
  testing::expect_close(decoded.narrow(1, 0, 4), expected.narrow(1, 0, 4), 0,
                        fixture.tolerance("decoded_box_px").absolute, "boxes");
  testing::expect_close(decoded.narrow(1, 4, classes), expected.narrow(1, 4, classes), 0,
                        fixture.tolerance("decoded_score").absolute, "probabilities");
}

// Another memory format changes speed, never numbers beyond rounding.
TEST(Forward, IsTheSameInChannelsLast) {
  at::NoGradGuard const no_grad;
  Fixture fixture("n");
  fixture.network.to_channels_last();
  auto const image = fixture.image.contiguous(at::MemoryFormat::ChannelsLast);
  bool all_channels_last = true;
  auto const output = fixture.network.forward(image, [&](int, at::Tensor const& map) {
    all_channels_last &= map.is_contiguous(at::MemoryFormat::ChannelsLast);
  });
  EXPECT_TRUE(all_channels_last);
  auto const raw = fixture.tolerance("raw_head");
  testing::expect_close(output.boxes, fixture.tensor("boxes"), raw.relative, raw.absolute, "boxes");
  testing::expect_close(output.scores, fixture.tensor("scores"), raw.relative, raw.absolute,
                        "scores");
}

}  // namespace
}  // namespace yolohpc::model
