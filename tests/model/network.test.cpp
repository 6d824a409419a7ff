// What a network promises beside its numbers: counts, groups, loading, identity of tensors,
// refusals.

#include "yolohpc/model/network.hpp"

#include <cmath>
#include <map>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "model/fixture.hpp"

namespace yolohpc::model {
namespace {

Network small_network(std::int64_t classes = 80) {
  return {load_graph("yolo11n"), {classes}};
}

std::string message_of(std::function<void()> const& action, base::ExitCode code) {
  try {
    action();
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

struct Totals {
  char const* name;
  std::int64_t classes;
  std::int64_t parameters;
  double gflops;  ///< at 640 x 640, three digits
};

class Counts : public ::testing::TestWithParam<Totals> {};

// Source: spec/model.md, section 3.
TEST_P(Counts, EqualTheSpecification) {
  auto const& expected = GetParam();
  Network network(load_graph(expected.name), {expected.classes});
  EXPECT_EQ(network.parameter_count(), expected.parameters);
  if (expected.gflops == 0) return;
  EXPECT_NEAR(static_cast<double>(network.convolution_flops(640, 640)) / 1e9, expected.gflops,
              5e-4);
}

INSTANTIATE_TEST_SUITE_P(Scales, Counts,
                         ::testing::Values(Totals{"yolo11n", 80, 2'624'080, 6.481},
                                           Totals{"yolo11s", 80, 9'458'752, 21.467},
                                           Totals{"yolo11m", 80, 20'114'688, 67.982},
                                           Totals{"yolo11l", 80, 25'372'160, 86.910},
                                           Totals{"yolo11x", 80, 56'966'176, 194.904},
                                           Totals{"yolo11n", 3, 2'590'425, 0},
                                           Totals{"yolo11s", 3, 9'428'953, 0},
                                           Totals{"yolo11m", 3, 20'055'321, 0}));

// Counting runs a forward pass inside; nobody may see it.
TEST(Network, CountsFlopsWithoutTraces) {
  auto network = small_network();
  auto const mean = network.buffers().front().tensor.clone();
  network.convolution_flops(64, 64);
  EXPECT_TRUE(network.training());
  EXPECT_TRUE(network.buffers().front().tensor.equal(mean));
}

// Source: spec/optim.md, section 2; the frozen kernel counts as a weight there.
TEST(Network, TellsTheGroupsOfItsParameters) {
  std::map<std::string, int> counts;
  for (auto const& p : small_network().parameters()) {
    counts[p.is_bias ? "bias" : p.is_norm ? "norm" : "weight"]++;
    if (!p.trainable) counts["frozen"]++;
    EXPECT_EQ(p.in_class_branch, p.name.find("model.23.cv3.") == 0) << p.name;
    EXPECT_EQ(p.tensor.requires_grad(), p.trainable) << p.name;
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{
                        {"weight", 88}, {"norm", 81}, {"bias", 87}, {"frozen", 1}}));
}

TEST(Network, RefusesSizesThatAreNoMultipleOfItsStride) {
  auto network = small_network();
  auto const message = message_of(
      [&] {
        network.forward(at::zeros({2, 3, 100, 128}));
      },
      base::ExitCode::usage);
  EXPECT_NE(message.find("100 x 128"), std::string::npos) << message;
  EXPECT_NE(message.find("multiples of 32"), std::string::npos) << message;
  EXPECT_NE(message_of(
                [&] {
                  network.forward(at::zeros({2, 1, 64, 64}));
                },
                base::ExitCode::usage)
                .find("[2, 1, 64, 64]"),
            std::string::npos);
}

// Batch norm divides by (values - 1): one image of 32 x 32 px has one value on the map of
// stride 32.
TEST(Network, RefusesToTrainOnOneValuePerChannel) {
  auto network = small_network();
  auto const message = message_of([&] { network.check_input({1, 32, 32}); }, base::ExitCode::usage);
  EXPECT_NE(message.find("1 value per channel"), std::string::npos) << message;
  EXPECT_NO_THROW(network.check_input({2, 32, 32}));
  EXPECT_NO_THROW(network.check_input({1, 64, 32}));
  network.set_training(false);
  EXPECT_NO_THROW(network.forward(at::zeros({1, 3, 32, 32})));
}

TEST(Network, StartsFromTheSeedAlone) {
  auto network = small_network();
  auto const kernel = network.entries().front().tensor;  // 27 inputs
  auto const first = kernel.detach().clone();
  network.initialise(1);
  EXPECT_FALSE(kernel.equal(first));
  network.initialise(0);
  EXPECT_TRUE(kernel.equal(first));
  auto const bound = 1 / std::sqrt(27.0);
  EXPECT_LE(first.abs().max().item<double>(), bound);
  EXPECT_GT(first.abs().max().item<double>(), 0.95 * bound);
  EXPECT_NEAR(first.std().item<double>(), bound / std::sqrt(3.0), 0.05 * bound);
}

// Source: spec/model.md, section 6.
TEST(Network, StartsItsHeadAtTheFrequencyOfObjects) {
  auto const state = small_network().state();
  double const expected[] = {-11.536642, -10.150348, -8.764053};
  for (int level = 0; level < 3; ++level) {
    auto const number = std::to_string(level);
    auto const box = base::find_tensor(state, "model.23.cv2." + number + ".2.bias");
    EXPECT_TRUE(box.eq(2).all().item<bool>());
    auto const score = base::find_tensor(state, "model.23.cv3." + number + ".2.bias");
    testing::expect_close(score.detach(), at::full_like(score, expected[level]), 1e-6, 0, "bias");
  }
  auto const moving = base::find_tensor(state, "model.0.bn.running_var");
  EXPECT_TRUE(moving.eq(1).all().item<bool>());
}

// Weights of another class count: everything but the class branch arrives, the rest keeps its
// values.
TEST(LoadState, CopiesWhatMatches) {
  auto source = small_network(3);
  source.initialise(7);
  auto network = small_network(80);
  auto const untouched = base::find_tensor(network.state(), "model.23.cv3.0.2.weight").clone();
  auto const report = network.load_state(source.state(), LoadMode::matching);
  EXPECT_EQ(report.loaded.size() + report.skipped.size(), network.entries().size());
  ASSERT_FALSE(report.skipped.empty());
  for (auto const& each : report.skipped) {
    EXPECT_EQ(each.name.find("model.23.cv3."), 0u) << each.name;
    EXPECT_NE(each.reason.find(" in the network"), std::string::npos) << each.reason;
  }
  auto const same = [&](std::string const& name) {
    return base::find_tensor(network.state(), name).equal(base::find_tensor(source.state(), name));
  };
  EXPECT_TRUE(same("model.0.conv.weight"));
  EXPECT_TRUE(same("model.23.cv2.0.2.weight"));
  EXPECT_TRUE(base::find_tensor(network.state(), "model.23.cv3.0.2.weight").equal(untouched));
}

TEST(LoadState, StrictlyRefusesAndChangesNothing) {
  auto network = small_network(80);
  auto source = small_network(3);
  source.initialise(7);
  auto const before = network.entries().front().tensor.detach().clone();
  auto state = source.state();
  state.push_back({"model.99.extra", at::zeros({1})});
  auto const message =
      message_of([&] { network.load_state(state, LoadMode::strict); }, base::ExitCode::bad_data);
  EXPECT_NE(message.find("model.23.cv3.0.0.1.conv.weight: shape [64, 64, 1, 1] in the file, "
                         "[80, 64, 1, 1] in the network"),
            std::string::npos)
      << message;
  EXPECT_TRUE(network.entries().front().tensor.equal(before));
  auto const unknown = message_of(
      [&] {
        auto own = network.state();
        own.push_back({"model.99.extra", at::zeros({1})});
        network.load_state(own, LoadMode::strict);
      },
      base::ExitCode::bad_data);
  EXPECT_NE(unknown.find("model.99.extra: not in the network"), std::string::npos) << unknown;
}

// Half-precision files load into float32 networks.
TEST(LoadState, ConvertsTypes) {
  auto network = small_network();
  auto state = network.state();
  for (auto& each : state) each.tensor = each.tensor.detach().to(at::kHalf);
  network.load_state(state, LoadMode::strict);
  auto const kernel = network.entries().front().tensor;
  EXPECT_EQ(kernel.scalar_type(), at::kFloat);
  EXPECT_TRUE(kernel.equal(state.front().tensor.to(at::kFloat)));
}

// The engine puts one flat buffer under all parameters; the network has to compute with it.
TEST(Network, ComputesWithTheStorageItsHandlesPointTo) {
  at::NoGradGuard const no_grad;
  auto network = small_network();
  network.set_training(false);
  auto const parameters = network.parameters();
  auto const image = at::rand({1, 3, 64, 64});
  auto const before = network.forward(image);
  std::int64_t total = 0;
  for (auto const& p : parameters) total += p.tensor.numel();
  auto const flat = at::empty({total});
  std::int64_t offset = 0;
  for (auto const& p : parameters) {
    auto const view = flat.narrow(0, offset, p.tensor.numel()).view(p.tensor.sizes());
    view.copy_(p.tensor);
    at::Tensor(p.tensor).set_data(view);
    offset += p.tensor.numel();
  }
  EXPECT_TRUE(network.forward(image).boxes.equal(before.boxes));
  flat.zero_();
  EXPECT_EQ(network.forward(image).boxes.abs().max().item<float>(), 0);
}

// The second network is the moving average of the first.
TEST(Network, SharesNothingWithAnotherOne) {
  auto network = small_network();
  auto average = small_network();
  average.load_state(network.state(), LoadMode::strict);
  auto const mean = base::find_tensor(average.state(), "model.0.bn.running_mean").clone();
  network.forward(at::rand({2, 3, 64, 64}));
  EXPECT_TRUE(base::find_tensor(average.state(), "model.0.bn.running_mean").equal(mean));
  EXPECT_FALSE(base::find_tensor(network.state(), "model.0.bn.running_mean").equal(mean));
}

TEST(Network, OutlivesAMove) {
  auto network = small_network();
  network.set_training(false);
  auto const image = at::rand({1, 3, 64, 64});
  auto const before = network.forward(image).scores.detach();
  Network moved = std::move(network);
  EXPECT_EQ(moved.class_count(), 80);
  EXPECT_TRUE(moved.forward(image).scores.equal(before));
}

TEST(Network, ChangesNoStateInEvaluation) {
  auto network = small_network();
  network.set_training(false);
  base::NamedTensors before;
  for (auto const& [name, tensor] : network.buffers()) before.push_back({name, tensor.clone()});
  network.forward(at::rand({2, 3, 64, 64}));
  for (auto const& [name, tensor] : network.buffers()) {
    EXPECT_TRUE(tensor.equal(base::find_tensor(before, name))) << name;
  }
}

// Statistics over several ranks come in through a function: it gets every norm, in training alone.
TEST(Network, LetsBatchNormBeReplaced) {
  at::NoGradGuard const no_grad;
  auto network = small_network();
  int calls = 0;
  network.set_batch_norm([&](at::Tensor const& input, BatchNormState const& state) {
    EXPECT_EQ(state.running_mean.numel(), input.size(1));
    ++calls;
    return input.clone();
  });
  EXPECT_NO_THROW(network.forward(at::rand({1, 3, 32, 32})));  // other ranks may have more values
  EXPECT_EQ(calls, 81);
  network.set_training(false);
  network.forward(at::rand({1, 3, 32, 32}));
  EXPECT_EQ(calls, 81);
}

/// Gradients of one step whose forward pass runs in bf16 and whose backward pass starts outside
/// autocast.
std::vector<at::Tensor> bf16_gradients(bool checkpoints) {
  auto network = small_network();
  network.set_activation_checkpoints(checkpoints);
  auto const images = testing::formula_image("image", {2, 3, 64, 64}, 0);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  auto const output = network.forward(images);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(output.scores.scalar_type(), at::kBFloat16);
  // The cache of cast weights is left filled, as it is in a training step.
  (output.boxes.to(at::kFloat).square().sum() + output.scores.to(at::kFloat).square().sum())
      .backward();
  at::autocast::clear_cache();
  std::vector<at::Tensor> gradients;
  for (auto const& p : network.parameters()) {
    if (p.trainable) gradients.push_back(p.tensor.grad());
  }
  return gradients;
}

// A layer that is computed again in the backward pass is computed in bf16 again.
TEST(ActivationCheckpoints, KeepEveryGradientUnderAutocast) {
  auto const expected = bf16_gradients(false);
  auto const got = bf16_gradients(true);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(got[i].defined()) << i;
    EXPECT_TRUE(got[i].equal(expected[i])) << i;
  }
}

}  // namespace
}  // namespace yolohpc::model
