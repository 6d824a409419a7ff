// Loss, gradients and assignments on stored predictions, and what no fixture shows.

#include "yolohpc/loss/criterion.hpp"

#include <set>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "yolohpc/boxes/anchors.hpp"
#include "yolohpc/boxes/coding.hpp"

#include "loss/targets.hpp"
#include "model/fixture.hpp"

namespace yolohpc::loss {
namespace {

using nlohmann::json;
using testing::Tolerance;

/// Stored predictions and labels.
struct Fixture {
  explicit Fixture(std::string const& name)
      : meta(testing::golden_json(name + ".json")),
        tensors(testing::golden_tensors(name + ".safetensors").tensors) {
    for (std::size_t i = 0; i < meta["strides"].size(); ++i) {
      levels.push_back({meta["level_hw"][i][0], meta["level_hw"][i][1], meta["strides"][i]});
    }
    settings.gains = {meta["gains"]["box"], meta["gains"]["cls"], meta["gains"]["dfl"]};
  }
  at::Tensor tensor(char const* name) const { return base::find_tensor(tensors, name); }
  std::int64_t images() const { return meta["batch"]; }
  /// Predictions that collect gradients.
  model::HeadOutput predictions() const {
    return {tensor("pred_boxes").clone().set_requires_grad(true),
            tensor("pred_scores").clone().set_requires_grad(true), levels};
  }
  Targets targets(std::int64_t extra_rows = 3) const {
    return testing::make_targets(tensor("batch_idx"), tensor("cls"), tensor("bboxes"), images(),
                                 tensor("gt_valid").size(1) + extra_rows);
  }
  Tolerance tolerance(char const* name) const {
    return testing::parse_tolerance(meta["tolerance"][name]);
  }
  AssignerInput assigner_input() const {
    auto const anchors = boxes::make_anchor_points(levels, at::kCPU);
    auto const distances = boxes::expected_distances(tensor("pred_boxes"), model::distance_bins);
    auto const labels = targets();
    return {
        boxes::corners_from_distances(distances, anchors.points) * anchors.strides_px,
        tensor("pred_scores"),
        anchors.points * anchors.strides_px,
        boxes::corners_px_from_normalised(labels.boxes, meta["image_hw"][0], meta["image_hw"][1]),
        labels.labels,
        labels.valid,
        static_cast<double>(levels[1].stride_px)};
  }

  json meta;
  base::NamedTensors tensors;
  std::vector<model::Level> levels;
  LossSettings settings;
};

class LossFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(LossFixture, DecodesTheSameBoxes) {
  Fixture const fixture(GetParam());
  auto const input = fixture.assigner_input();
  testing::expect_close(input.predicted_px.transpose(1, 2), fixture.tensor("decoded_xyxy_px"), 1e-5,
                        1e-4, "predicted boxes");
  auto const expected = fixture.tensor("gt_boxes_xyxy");
  testing::expect_close(input.boxes_px.narrow(1, 0, expected.size(1)), expected, 1e-6, 1e-5,
                        "true boxes");
}

TEST_P(LossFixture, AssignsTheSameBoxes) {
  Fixture const fixture(GetParam());
  auto const got = assign(fixture.assigner_input());
  auto const weighted = got.foreground.logical_and(got.weight > 0);
  EXPECT_TRUE(weighted.equal(fixture.tensor("fg_mask").to(at::kBool)));
  auto const index = at::where(weighted, got.box_index, at::full_like(got.box_index, -1));
  EXPECT_TRUE(index.equal(fixture.tensor("assigned_gt").to(at::kLong)));
  auto const bound = fixture.tolerance("target_weight");
  testing::expect_close(got.weight, fixture.tensor("target_weight"), bound.relative, bound.absolute,
                        "weights");
  auto const rows = fixture.tensor("target_scores_index").to(at::kLong);
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    auto const image = rows[i][0].item<std::int64_t>();
    auto const point = rows[i][1].item<std::int64_t>();
    EXPECT_EQ(got.label[image][point].item<std::int64_t>(), rows[i][2].item<std::int64_t>());
  }
}

void expect_losses(Loss const& loss, json const& times_batch, std::int64_t images,
                   Tolerance const& bound) {
  double total = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    double const expected = times_batch[static_cast<std::size_t>(i)];
    testing::expect_near(loss.items[i].item<double>() * static_cast<double>(images), expected,
                         bound, "item " + std::to_string(i));
    total += expected;
  }
  testing::expect_near(loss.total.item<double>(), total, bound, "total");
}

TEST_P(LossFixture, HasTheSameLossAndGradients) {
  Fixture const fixture(GetParam());
  auto const predictions = fixture.predictions();
  auto const loss = detection_loss(predictions, fixture.targets(), fixture.settings);
  expect_losses(loss, fixture.meta["loss_vector_box_cls_dfl_times_batch"], fixture.images(),
                fixture.tolerance("loss"));
  testing::expect_near(loss.target_score_sum.item<double>(), fixture.meta["target_scores_sum"],
                       fixture.tolerance("loss"), "sum of target scores");
  loss.total.backward();
  auto const bound = fixture.tolerance("grad");
  testing::expect_close(predictions.boxes.grad(), fixture.tensor("grad_boxes"), bound.relative,
                        bound.absolute, "gradient of boxes");
  testing::expect_close(predictions.scores.grad(), fixture.tensor("grad_scores"), bound.relative,
                        bound.absolute, "gradient of scores");
}

// Padding of any length, also none, is a batch without boxes.
TEST_P(LossFixture, IsZeroForBoxesWithoutLabels) {
  Fixture const fixture(GetParam());
  auto const& expected = fixture.meta["empty_batch"];
  for (std::int64_t const rows : {0, 1, 8}) {
    auto const none = at::zeros({0});
    auto const targets =
        testing::make_targets(none, none, at::zeros({0, 4}), fixture.images(), rows);
    auto const predictions = fixture.predictions();
    auto const loss = detection_loss(predictions, targets, fixture.settings);
    expect_losses(loss, expected["loss_vector"], fixture.images(), fixture.tolerance("loss"));
    EXPECT_EQ(loss.items[0].item<float>(), 0);
    EXPECT_EQ(loss.items[2].item<float>(), 0);
    loss.total.backward();
    ASSERT_TRUE(predictions.boxes.grad().defined());
    EXPECT_EQ(predictions.boxes.grad().abs().max().item<float>(), 0);
    testing::expect_near(predictions.scores.grad().sum().item<double>(),
                         expected["grad_scores_sum"], fixture.tolerance("loss"), "gradient");
  }
}

TEST_P(LossFixture, DoesNotDependOnPadding) {
  Fixture const fixture(GetParam());
  auto const predictions = fixture.predictions();
  auto const few = detection_loss(predictions, fixture.targets(0), fixture.settings);
  auto const many = detection_loss(predictions, fixture.targets(40), fixture.settings);
  EXPECT_TRUE(few.items.equal(many.items));
}

TEST_P(LossFixture, DoesNotDependOnTurns) {
  Fixture const fixture(GetParam());
  auto const input = fixture.assigner_input();
  auto const at_once = assign(input);
  for (std::int64_t const boxes_per_turn : {1, 2, 5}) {
    AssignerSettings settings;
    settings.pairs_at_once = boxes_per_turn * input.scores.size(0) * input.scores.size(2);
    auto const in_turns = assign(input, settings);
    EXPECT_TRUE(in_turns.foreground.equal(at_once.foreground));
    EXPECT_TRUE(in_turns.box_index.equal(at_once.box_index));
    EXPECT_TRUE(in_turns.weight.equal(at_once.weight)) << boxes_per_turn << " boxes at a time";
  }
}

// A CUDA graph cannot hold a read back from the device or a shape that depends on values.
TEST_P(LossFixture, ReadsNothingBackFromTheDevice) {
  Fixture const fixture(GetParam());
  auto const predictions = fixture.predictions();
  auto const targets = fixture.targets();
  static std::set<std::string> seen;
  seen.clear();
  auto const handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](at::RecordFunction const& function)
                                     -> std::unique_ptr<at::ObserverContext> {
        seen.insert(function.name());
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  detection_loss(predictions, targets, fixture.settings).total.backward();
  at::removeCallback(handle);
  EXPECT_TRUE(seen.count("aten::atan")) << "the recorder saw nothing";
  for (auto const* name : {"aten::_local_scalar_dense", "aten::item", "aten::nonzero",
                           "aten::masked_select", "aten::index", "aten::index_put_",
                           "aten::_index_put_impl_", "aten::is_nonzero", "aten::equal"}) {
    EXPECT_FALSE(seen.count(name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Classes, LossFixture, ::testing::Values("loss_nc3", "loss_nc80"));

// The divisor of the sums can be replaced, for instance by a mean over ranks.
TEST(DetectionLoss, DividesByWhatItIsGiven) {
  Fixture const fixture("loss_nc3");
  auto settings = fixture.settings;
  auto const own = detection_loss(fixture.predictions(), fixture.targets(), settings);
  settings.normaliser = [](at::Tensor const& sum) { return sum * 2; };
  auto const halved = detection_loss(fixture.predictions(), fixture.targets(), settings);
  testing::expect_close(halved.items * 2, own.items, 1e-6, 0, "items");
}

// bf16 predictions are read as float32: the loss is that of the rounded values.
TEST(DetectionLoss, ComputesInFloat32) {
  Fixture const fixture("loss_nc3");
  auto half = fixture.predictions();
  half.boxes = half.boxes.detach().to(at::kBFloat16);
  half.scores = half.scores.detach().to(at::kBFloat16);
  auto rounded = half;
  rounded.boxes = half.boxes.to(at::kFloat);
  rounded.scores = half.scores.to(at::kFloat);
  auto const got = detection_loss(half, fixture.targets(), fixture.settings);
  auto const expected = detection_loss(rounded, fixture.targets(), fixture.settings);
  EXPECT_EQ(got.items.scalar_type(), at::kFloat);
  EXPECT_TRUE(got.items.equal(expected.items));
}

// sigmoid(0) - 0 = 1/2: a kink of max(x, 0) at zero would give 1 or 0.
TEST(DetectionLoss, HasASmoothClassGradientAtZero) {
  Fixture const fixture("loss_nc3");
  auto predictions = fixture.predictions();
  predictions.scores = at::zeros_like(predictions.scores).set_requires_grad(true);
  auto const none = at::zeros({0});
  auto const targets = testing::make_targets(none, none, at::zeros({0, 4}), fixture.images(), 8);
  detection_loss(predictions, targets, fixture.settings).total.backward();
  auto const gain = fixture.settings.gains.cls * static_cast<double>(fixture.images());
  testing::expect_close(predictions.scores.grad(), at::full_like(predictions.scores, gain / 2),
                        1e-6, 0, "gradient");
}

}  // namespace
}  // namespace yolohpc::loss
