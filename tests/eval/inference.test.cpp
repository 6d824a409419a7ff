#include "yolohpc/eval/inference.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/world.hpp"

#include "data/packed_set.hpp"
#include "model/fixture.hpp"
#include "support/golden.hpp"

namespace yolohpc::eval {
namespace {

constexpr int picture_count = 3;  // fewer than ranks in the largest run
constexpr double tolerance = 1e-12;

std::vector<data::PackImage> pictures() {
  std::vector<data::PackImage> images;
  for (int i = 0; i < picture_count; ++i) {
    auto const picture = testing::smooth_picture(50 + 10 * i, 64 - 7 * i, 5u + i);
    images.push_back({.id = 31 - 7 * i,
                      .file_name = "picture " + std::to_string(i) + ".png",
                      .bytes = testing::png_bytes(picture),
                      .annotations = {}});
  }
  return images;
}

/// A packed set with its source.
struct Packed {
  testing::TemporaryFolder folder;
  std::unique_ptr<data::ShardSet> set;
  std::unique_ptr<data::SampleSource> source;

  explicit Packed(std::vector<data::PackImage> const& images) {
    auto settings = testing::pack_settings(folder.path());
    settings.split = "val";
    data::pack_images(testing::two_categories(), images, settings);
    set = std::make_unique<data::ShardSet>(folder.path(), "val");
    source = data::make_shard_source(*set);
  }
};

InferenceSettings settings(std::int64_t batch) {
  InferenceSettings result;
  result.loader.batch = batch;
  result.loader.image_size = 64;
  result.keeps_predictions = true;
  return result;
}

/// Weights by formula find both classes all over the picture. The box branch is weakened and leans
/// to short distances, so that boxes are small and differ from place to place.
model::Network network() {
  model::Network result(model::load_graph("yolo11n"), {2});
  testing::load_formula(result, 0);
  at::NoGradGuard const no_grad;
  auto const bins = at::arange(model::distance_bins, at::kFloat).repeat({4});
  for (auto const& entry : result.entries()) {
    if (entry.name.find("model.23.cv2.") == std::string::npos) continue;
    if (entry.name.ends_with(".2.weight")) at::Tensor(entry.tensor).mul_(0.05);
    if (entry.name.ends_with(".2.bias")) at::Tensor(entry.tensor).copy_(-bins);
  }
  result.set_training(false);
  return result;
}

/// Objects where the network finds some: detections 0, 6, 12, ... of each picture, a little moved,
/// the second one a crowd.
std::vector<data::PackImage> with_objects(std::vector<data::PackImage> images,
                                          std::vector<NamedDetection> const& found) {
  std::int64_t id = 1;
  for (auto& image : images) {
    int place = 0;
    for (auto const& [detection, file_name] : found) {
      if (detection.image_id != image.id || place++ % 6 != 0 || detection.box[2] < 4) continue;
      auto box = detection.box;
      box[0] += 0.1 * box[2] * (place % 5);
      image.annotations.push_back({.id = id++,
                                   .xywh_px = box,
                                   .area = box[2] * box[3],
                                   .class_index = detection.category_id == 3 ? 0 : 1,
                                   .is_crowd = image.annotations.size() == 1});
    }
  }
  return images;
}

class Inference : public ::testing::Test {
 protected:
  Inference() : network_(network()) {
    auto const alone = comm::make_single_communicator();
    Packed const bare(pictures());
    auto const found = run_inference({network_, *bare.set, *bare.source, *alone}, settings(1));
    packed_ = std::make_unique<Packed>(with_objects(pictures(), found.predictions));
  }

  InferenceResult run(comm::Communicator& communicator, std::int64_t batch,
                      LossFunction const& loss = {}) {
    return run_inference({network_, *packed_->set, *packed_->source, communicator}, settings(batch),
                         loss);
  }

  model::Network network_;
  std::unique_ptr<Packed> packed_;
};

/// A loss with sums that are easy to foresee: every label counts 2 in the target score sum, and the
/// items times that sum add 1, 10 and 100 a label.
LossParts counting_loss(model::HeadOutput const& output, data::Batch const& batch) {
  EXPECT_EQ(output.boxes.size(0), batch.images.size(0));
  auto const labels = batch.valid.sum().to(at::kFloat);
  auto const target_score_sum = 2 * labels;
  auto const sums = labels * at::tensor({1.f, 10.f, 100.f});
  return {sums / target_score_sum.clamp_min(1), target_score_sum};
}

TEST_F(Inference, GivesTheSameForAnyRankCountAndBatchSize) {
  comm::World world;
  auto const communicator = comm::make_mpi_communicator(world, {.timeout_s = 60});
  auto const alone = comm::make_single_communicator();
  auto const expected = run(*alone, 1, counting_loss);
  EXPECT_GT(expected.coco.numbers[AP], 0.01) << "the test needs hits";
  EXPECT_LT(expected.coco.numbers[AP], 0.99) << "and misses";
  EXPECT_GT(expected.metrics.map50_95, 0.01);
  EXPECT_EQ(expected.coco.images, picture_count);
  EXPECT_NEAR(expected.losses[0], 0.5, 1e-6);
  EXPECT_NEAR(expected.losses[2], 50, 1e-4);
  for (std::int64_t const batch : {1, 2, 8}) {
    auto const got = run(*communicator, batch, counting_loss);
    SCOPED_TRACE(batch);
    EXPECT_EQ(got.coco.numbers, expected.coco.numbers);
    EXPECT_EQ(got.coco.detections, expected.coco.detections);
    EXPECT_EQ(got.coco.images, picture_count);
    EXPECT_EQ(got.metrics.ap, expected.metrics.ap);
    EXPECT_EQ(got.metrics.mean_precision, expected.metrics.mean_precision);
    EXPECT_NEAR(got.losses[1], expected.losses[1], 1e-6);
    if (world.rank() > 0) {
      EXPECT_TRUE(got.predictions.empty());
      continue;
    }
    ASSERT_EQ(got.predictions.size(), expected.predictions.size());
    for (std::size_t i = 0; i < got.predictions.size(); ++i) {
      EXPECT_EQ(got.predictions[i].detection.box, expected.predictions[i].detection.box);
      EXPECT_EQ(got.predictions[i].file_name, expected.predictions[i].file_name);
    }
  }
}

// The written file scored against the annotations is the check that a user can make.
TEST_F(Inference, GivesWhatScoringTheWrittenPredictionsGives) {
  auto const alone = comm::make_single_communicator();
  auto const result = run(*alone, 2);
  testing::TemporaryFolder folder;
  write_detections(folder.path() / "predictions.json", result.predictions);
  CocoDataset dataset{{}, {{3, "a"}, {17, "b"}}, {}};
  for (std::int64_t i = 0; i < packed_->set->size(); ++i) {
    auto const record = packed_->set->record(i);
    dataset.image_ids.push_back(record.image_id);
    for (auto const& a : packed_->set->annotations(i)) {
      dataset.objects.push_back(
          {a.id, record.image_id, a.class_index == 0 ? 3 : 17, a.xywh_px, a.area, a.is_crowd});
    }
  }
  auto const read = read_detections(folder.path() / "predictions.json", dataset);
  ASSERT_EQ(static_cast<std::int64_t>(read.size()), result.coco.detections);
  auto const scored = evaluate(dataset, read);
  for (int i = 0; i < coco_number_count; ++i) {
    EXPECT_NEAR(scored.numbers[i], result.coco.numbers[i], tolerance) << coco_number_names[i];
  }
}

TEST_F(Inference, ReportsOriginalPixelsAndCategoryIds) {
  auto const alone = comm::make_single_communicator();
  auto const result = run(*alone, 2);
  ASSERT_FALSE(result.predictions.empty());
  bool sees_both[2] = {false, false};
  for (auto const& [detection, file_name] : result.predictions) {
    ASSERT_TRUE(detection.category_id == 3 || detection.category_id == 17);
    sees_both[detection.category_id == 17] = true;
    int const index = file_name.at(8) - '0';
    EXPECT_EQ(detection.image_id, 31 - 7 * index);
    EXPECT_GE(detection.box[0], 0);
    EXPECT_LE(detection.box[0] + detection.box[2], 50 + 10 * index + 0.002);
    EXPECT_LE(detection.box[1] + detection.box[3], 64 - 7 * index + 0.002);
  }
  EXPECT_TRUE(sees_both[0] && sees_both[1]);
}

TEST_F(Inference, IsUndefinedOnASetWithoutObjects) {
  auto const alone = comm::make_single_communicator();
  Packed const bare(pictures());
  auto const result = run_inference({network_, *bare.set, *bare.source, *alone}, settings(2));
  EXPECT_FALSE(result.coco.is_defined());
  EXPECT_FALSE(result.metrics.is_defined());
}

TEST_F(Inference, RefusesANetworkOfOtherClasses) {
  auto const alone = comm::make_single_communicator();
  model::Network other(model::load_graph("yolo11n"), {5});
  try {
    run_inference({other, *packed_->set, *packed_->source, *alone}, settings(1));
    FAIL() << "accepted";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("5 classes"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), base::ExitCode::usage);
  }
}

}  // namespace
}  // namespace yolohpc::eval
