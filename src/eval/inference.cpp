#include "yolohpc/eval/inference.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/eval/matches.hpp"

#include "byte_stream.hpp"
#include "result_bytes.hpp"

namespace yolohpc::eval {
namespace {

constexpr int root = 0;

/// The losses of one batch as sums over its anchors, which add up over batches.
struct LossSums {
  std::int64_t first_sample;
  double target_score_sum;
  std::array<double, 3> items;
};

struct SentDetection {
  std::int64_t sample;
  CocoDetection detection;
};

at::Tensor to_input(at::Tensor const& images, model::Network const& network) {
  constexpr double brightest = 255;
  auto const weight = network.parameters().front().tensor;
  return images.to(weight.device())
      .to(at::kFloat)
      .div_(brightest)
      .contiguous(weight.suggest_memory_format());
}

model::HeadOutput one_by_one(model::Network& network, at::Tensor const& input) {
  std::vector<at::Tensor> boxes;
  std::vector<at::Tensor> scores;
  model::HeadOutput output;
  for (std::int64_t b = 0; b < input.size(0); ++b) {
    output = network.forward(input.narrow(0, b, 1));
    boxes.push_back(output.boxes);
    scores.push_back(output.scores);
  }
  output.boxes = at::cat(boxes);
  output.scores = at::cat(scores);
  return output;
}

// CPU kernels round differently for different batch sizes; a GPU would idle on single images.
model::HeadOutput forward(model::Network& network, at::Tensor const& images) {
  auto const input = to_input(images, network);
  return input.is_cpu() ? one_by_one(network, input) : network.forward(input);
}

std::vector<TrueBox> true_boxes(data::Batch const& batch, std::int64_t b) {
  auto const width = static_cast<float>(batch.images.size(3));
  auto const height = static_cast<float>(batch.images.size(2));
  auto const boxes = batch.boxes.accessor<float, 3>()[b];
  auto const labels = batch.labels.accessor<std::int64_t, 2>()[b];
  auto const valid = batch.valid.accessor<bool, 2>()[b];
  std::vector<TrueBox> result;
  for (std::int64_t m = 0; m < valid.size(0) && valid[m]; ++m) {
    float const half_width = boxes[m][2] / 2;
    float const half_height = boxes[m][3] / 2;
    result.push_back({{(boxes[m][0] - half_width) * width, (boxes[m][1] - half_height) * height,
                       (boxes[m][0] + half_width) * width, (boxes[m][1] + half_height) * height},
                      static_cast<std::int32_t>(labels[m])});
  }
  return result;
}

std::vector<FoundBox> found_boxes(at::Tensor const& rows) {
  auto const view = rows.accessor<float, 2>();
  std::vector<FoundBox> result;
  for (std::int64_t d = 0; d < view.size(0); ++d) {
    auto const row = view[d];
    result.push_back({{row[0], row[1], row[2], row[3]}, row[4], static_cast<std::int32_t>(row[5])});
  }
  return result;
}

// The most labels of an image; a limit of detections below it would make some unreachable.
std::int64_t most_labels(data::ShardSet const& set) {
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    auto const annotations = set.annotations(i);
    most = std::max(most, std::count_if(annotations.begin(), annotations.end(),
                                        [](auto const& a) { return !a.is_crowd; }));
  }
  return most;
}

boxes::NmsSettings raised_limit(boxes::NmsSettings settings, data::ShardSet const& set) {
  auto const usual = boxes::NmsSettings{}.max_detections;
  if (settings.max_detections == usual) settings.max_detections = std::max(usual, most_labels(set));
  return settings;
}

std::vector<std::int64_t> category_ids(data::ShardSet const& set) {
  std::vector<std::int64_t> ids;
  for (auto const& category : set.categories()) ids.push_back(category.id);
  return ids;
}

std::vector<std::int64_t> image_ids(data::ShardSet const& set) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < set.size(); ++i) ids.push_back(set.record(i).image_id);
  return ids;
}

/// What one rank finds.
class RankPart {
 public:
  RankPart(InferenceSubject const& subject, InferenceSettings const& settings)
      : set_(subject.set),
        categories_(category_ids(subject.set)),
        keeps_predictions_(settings.keeps_predictions),
        matches(categories_, settings.coco) {}

  void add_image(data::Batch const& batch, std::int64_t b, at::Tensor const& rows) {
    auto const sample = static_cast<std::int64_t>(batch.samples[b]);
    auto const found = found_boxes(rows);
    records.add_image(sample, found, true_boxes(batch, b));
    std::vector<CocoDetection> detections;
    for (auto const& box : found) {
      detections.push_back(to_coco(box, batch.image_ids[b], batch.geometry[b]));
      if (keeps_predictions_) predictions.push_back({sample, detections.back()});
    }
    auto const objects = objects_of(sample);
    matches.add_image({batch.image_ids[b], objects, detections});
  }

  void add_losses(std::int64_t first_sample, LossParts const& parts) {
    auto const items = parts.items.to(at::kCPU, at::kDouble).contiguous();
    auto const score_sum = parts.target_score_sum.item<double>();
    LossSums sums{first_sample, score_sum, {}};
    for (int i = 0; i < 3; ++i) {
      sums.items[i] = items.const_data_ptr<double>()[i] * std::max(score_sum, 1.0);
    }
    losses.push_back(sums);
  }

 private:
  std::vector<CocoObject> objects_of(std::int64_t sample) const {
    std::vector<CocoObject> objects;
    auto const image_id = set_.record(sample).image_id;
    for (auto const& annotation : set_.annotations(sample)) {
      objects.push_back({annotation.id, image_id, categories_.at(annotation.class_index),
                         annotation.xywh_px, annotation.area, annotation.is_crowd});
    }
    return objects;
  }

  CocoDetection to_coco(FoundBox const& box, std::int64_t image_id,
                        data::ImageGeometry const& geometry) const {
    auto const& c = box.corners_px;
    auto const original = data::to_original({c[0], c[1], c[2], c[3]}, geometry);
    return rounded(
        {image_id,
         categories_.at(box.class_index),
         {original.x1, original.y1, original.x2 - original.x1, original.y2 - original.y1},
         box.confidence});
  }

  data::ShardSet const& set_;
  std::vector<std::int64_t> categories_;
  bool keeps_predictions_;

 public:
  Matches matches;
  DetectionRecords records;
  std::vector<LossSums> losses;
  std::vector<SentDetection> predictions;
};

void run_batch(InferenceSubject const& subject, boxes::NmsSettings const& nms,
               data::Batch const& batch, LossFunction const& loss, RankPart& part) {
  auto const output = forward(subject.network, batch.images);
  if (loss) part.add_losses(batch.samples.front(), loss(output, batch));
  auto const detections = boxes::non_maximum_suppression(model::decode(output), nms);
  for (std::size_t b = 0; b < detections.size(); ++b) {
    part.add_image(batch, static_cast<std::int64_t>(b), detections[b].rows);
  }
}

/// Entries of all ranks on the root, by `sample_of`; elsewhere none.
template <typename Entry, typename SampleOf>
std::vector<Entry> gather(comm::Communicator& communicator, std::vector<Entry> const& entries,
                          SampleOf&& sample_of) {
  ByteWriter writer;
  writer.array<Entry>(entries);
  std::vector<Entry> all;
  for (auto const& bytes : communicator.gather_bytes(writer.take(), root)) {
    auto const part = ByteReader(bytes).array<Entry>();
    all.insert(all.end(), part.begin(), part.end());
  }
  // Stable: the detections of an image come from one rank and are in order.
  std::stable_sort(all.begin(), all.end(),
                   [&](Entry const& a, Entry const& b) { return sample_of(a) < sample_of(b); });
  return all;
}

std::array<double, 3> mean_losses(std::vector<LossSums> const& sums) {
  std::array<double, 3> items{};
  double target_score_sum = 0;
  for (auto const& batch : sums) {
    target_score_sum += batch.target_score_sum;
    for (int i = 0; i < 3; ++i) items[i] += batch.items[i];
  }
  for (auto& item : items) item /= std::max(target_score_sum, 1.0);
  return items;
}

std::vector<NamedDetection> named(std::vector<SentDetection> const& sent,
                                  data::ShardSet const& set) {
  std::vector<NamedDetection> result;
  result.reserve(sent.size());
  for (auto const& [sample, detection] : sent) {
    result.push_back({detection, std::string(set.record(sample).file_name)});
  }
  return result;
}

// Every rank calls every collective, images or not.
InferenceResult merged(InferenceSubject const& subject, RankPart const& part) {
  auto& communicator = subject.communicator;
  auto const matches = communicator.gather_bytes(part.matches.to_bytes(), root);
  auto const records = communicator.gather_bytes(part.records.to_bytes(), root);
  auto const losses =
      gather(communicator, part.losses, [](auto const& e) { return e.first_sample; });
  auto const sent = gather(communicator, part.predictions, [](auto const& e) { return e.sample; });
  std::vector<std::byte> numbers;
  InferenceResult result;
  if (communicator.rank() == root) {
    Matches all_matches(category_ids(subject.set), part.matches.settings());
    for (auto const& bytes : matches) all_matches.merge(Matches::from_bytes(bytes));
    DetectionRecords all_records;
    for (auto const& bytes : records) all_records.merge(DetectionRecords::from_bytes(bytes));
    result.coco = all_matches.results(image_ids(subject.set));
    result.metrics = all_records.metrics();
    result.losses = mean_losses(losses);
    result.predictions = named(sent, subject.set);
    numbers = to_bytes(result);
  }
  communicator.broadcast_bytes(numbers, root);
  auto predictions = std::move(result.predictions);
  result = from_bytes(numbers);
  result.predictions = std::move(predictions);
  return result;
}

}  // namespace

InferenceResult run_inference(InferenceSubject const& subject, InferenceSettings const& settings,
                              LossFunction const& loss) {
  auto const classes = static_cast<std::int64_t>(subject.set.categories().size());
  YOLOHPC_CHECK_AS(base::ExitCode::usage, subject.network.class_count() == classes,
                   "the network has ", subject.network.class_count(), " classes, the split '",
                   subject.set.split(), "' has ", classes,
                   " categories. Use weights that were trained on these categories.");
  at::NoGradGuard const no_grad;
  auto loader_settings = settings.loader;
  loader_settings.rank = subject.communicator.rank();
  loader_settings.size = subject.communicator.size();
  data::ValLoader loader(subject.source, loader_settings);
  auto const nms = raised_limit(settings.nms, subject.set);
  RankPart part(subject, settings);
  while (auto const batch = loader.next()) run_batch(subject, nms, *batch, loss, part);
  auto result = merged(subject, part);
  result.bad_records = loader.take_bad_records();
  result.data_wait_s = loader.data_wait_s();
  return result;
}

}  // namespace yolohpc::eval
