#include "result_bytes.hpp"

#include "byte_stream.hpp"

namespace yolohpc::eval {
namespace {

/// Applies `number` and `array` to each part of a result in one order, for writing and for reading.
template <typename Result, typename Number, typename Array>
void visit(Result& result, Number&& number, Array&& array) {
  number(result.coco.numbers);
  array(result.coco.per_category);
  number(result.coco.images);
  number(result.coco.detections);
  number(result.coco.detection_limits);
  auto& metrics = result.metrics;
  array(metrics.classes);
  array(metrics.labels);
  array(metrics.precision);
  array(metrics.recall);
  array(metrics.f1);
  array(metrics.true_positives);
  array(metrics.false_positives);
  array(metrics.ap);
  number(metrics.mean_precision);
  number(metrics.mean_recall);
  number(metrics.map50);
  number(metrics.map75);
  number(metrics.map50_95);
  number(metrics.working_confidence);
  number(result.losses);
}

}  // namespace

std::vector<std::byte> to_bytes(InferenceResult const& result) {
  ByteWriter writer;
  visit(
      result, [&](auto const& value) { writer.number(value); },
      [&](auto const& values) { writer.array(std::span(values)); });
  return writer.take();
}

InferenceResult from_bytes(std::span<std::byte const> bytes) {
  ByteReader reader(bytes);
  InferenceResult result;
  visit(
      result, [&](auto& value) { value = reader.number<std::decay_t<decltype(value)>>(); },
      [&](auto& values) {
        values = reader.array<typename std::decay_t<decltype(values)>::value_type>();
      });
  reader.expect_end();
  return result;
}

}  // namespace yolohpc::eval
