// One training step's forward and backward pass through network and loss, against stored gradients.

#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "loss/targets.hpp"
#include "model/fixture.hpp"

namespace yolohpc::loss {
namespace {

using nlohmann::json;

/// backward_n_nc80, ... : every fixture of the kind.
std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  std::error_code missing;  // runs before main: no place for exceptions
  for (auto const& entry : std::filesystem::directory_iterator(testing::golden_dir(), missing)) {
    auto const name = entry.path().stem().string();
    if (name.rfind("backward_", 0) == 0) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

at::Tensor rows(json const& values) {
  return at::tensor(values.get<std::vector<float>>());
}

Targets read_targets(json const& meta, std::int64_t images) {
  std::vector<at::Tensor> boxes;
  for (auto const& box : meta["labels"]["bboxes_xywh_normalised"]) boxes.push_back(rows(box));
  constexpr std::int64_t padded_rows = 8;
  return testing::make_targets(rows(meta["labels"]["batch_idx"]), rows(meta["labels"]["cls"]),
                               at::stack(boxes), images, padded_rows);
}

model::Network build_network(json const& meta) {
  model::Network network(model::load_graph(meta["model"]), {meta["nc"].get<std::int64_t>()});
  testing::load_formula(network, meta["seed"]);
  network.initialise_head_biases();
  return network;
}

Loss run_step(model::Network& network, json const& meta) {
  auto const shape = meta["image"]["shape"].get<std::vector<std::int64_t>>();
  auto const images = testing::formula_image(meta["image"]["name"], shape, meta["seed"]);
  auto loss = detection_loss(network.forward(images), read_targets(meta, shape[0]));
  loss.total.backward();
  return loss;
}

void expect_gradients(model::Network const& network, json const& meta) {
  double const total = meta["grad_norm"];
  double const bound = meta["tolerance"]["per_param_norm_rel"];
  double squares = 0;
  std::size_t seen = 0;
  for (auto const& parameter : network.parameters()) {
    if (!parameter.trainable) continue;
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    auto const gradient = parameter.tensor.grad().to(at::kDouble);
    double const norm = gradient.norm().item<double>();
    auto const& expected = meta["grads"].at(parameter.name);
    double const reference = expected[0].get<double>() + 1e-4 * total;
    EXPECT_LE(std::abs(norm - expected[0].get<double>()) / reference, bound) << parameter.name;
    // A sum cancels, so its error is measured by the norm: sqrt(count) norm bounds the sum of
    // errors.
    double const spread = std::sqrt(static_cast<double>(gradient.numel()));
    EXPECT_LE(std::abs(gradient.sum().item<double>() - expected[1].get<double>()),
              bound * reference * spread)
        << parameter.name;
    squares += norm * norm;
    ++seen;
  }
  EXPECT_EQ(seen, meta["grads"].size());
  testing::expect_near(std::sqrt(squares), total, {meta["tolerance"]["grad_norm_rel"], 0}, "norm");
}

void expect_statistics(model::Network const& network, json const& meta) {
  double mean_sum = 0;
  double var_sum = 0;
  for (auto const& entry : network.entries()) {
    auto const sum = entry.tensor.detach().to(at::kDouble).sum().item<double>();
    if (entry.kind == model::StateKind::running_mean) mean_sum += sum;
    if (entry.kind == model::StateKind::running_var) var_sum += sum;
    if (entry.kind == model::StateKind::batch_count) {
      EXPECT_EQ(sum, 1) << entry.name;
    }
  }
  auto const& tolerance = meta["tolerance"];
  testing::expect_near(mean_sum, meta["running_mean_sum"], {tolerance["running_mean_rel"], 0},
                       "running means");
  testing::expect_near(var_sum, meta["running_var_sum"], {tolerance["running_var_rel"], 0},
                       "running variances");
}

void expect_step(model::Network& network, json const& meta) {
  auto const loss = run_step(network, meta);
  double const images = meta["image"]["shape"][0];
  for (std::int64_t i = 0; i < 3; ++i) {
    testing::expect_near(loss.items[i].item<double>() * images,
                         meta["loss_vector"][static_cast<std::size_t>(i)],
                         {meta["tolerance"]["loss_rel"], 0}, "item " + std::to_string(i));
  }
  expect_gradients(network, meta);
  expect_statistics(network, meta);
}

class Backward : public ::testing::TestWithParam<std::string> {};

TEST_P(Backward, EqualsTheFixture) {
  auto const meta = testing::golden_json(GetParam() + ".json");
  auto network = build_network(meta);
  expect_step(network, meta);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Backward, ::testing::ValuesIn(fixtures()),
                         [](auto const& info) { return info.param; });

// Computing layers a second time keeps every gradient and counts no batch twice.
TEST(BackwardWithCheckpoints, EqualsTheFixture) {
  auto const meta = testing::golden_json("backward_n_nc80.json");
  auto network = build_network(meta);
  network.set_activation_checkpoints(true);
  expect_step(network, meta);
}

TEST(BackwardInChannelsLast, EqualsTheFixture) {
  auto const meta = testing::golden_json("backward_n_nc80.json");
  auto network = build_network(meta);
  network.to_channels_last();
  expect_step(network, meta);
}

}  // namespace
}  // namespace yolohpc::loss
