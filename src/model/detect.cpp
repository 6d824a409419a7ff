#include "detect.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "conv.hpp"

namespace yolohpc::model {
namespace {

constexpr std::int64_t branch_kernel = 3;

/// Two 3x3 convolutions and one 1x1: distributions of the four distances.
class BoxBranch {
 public:
  BoxBranch(Scope const& scope, std::int64_t in, std::int64_t width)
      : cv0_(scope.child("0"), {.in_channels = in, .out_channels = width, .kernel = branch_kernel}),
        cv1_(scope.child("1"),
             {.in_channels = width, .out_channels = width, .kernel = branch_kernel}),
        last_(scope.child("2"), width, 4 * distance_bins) {}

  at::Tensor operator()(at::Tensor const& x, Pass const& pass) const {
    return last_(cv1_(cv0_(x, pass), pass), pass);
  }
  PointConv const& last() const { return last_; }

 private:
  ConvNorm cv0_;
  ConvNorm cv1_;
  PointConv last_;
};

/// Two depthwise-separable convolutions and one 1x1: class logits.
class ClassBranch {
 public:
  ClassBranch(Scope const& scope, std::int64_t in, std::int64_t width, std::int64_t classes)
      : depthwise0_(scope.child("0").child("0"), depthwise(in)),
        point0_(scope.child("0").child("1"), {.in_channels = in, .out_channels = width}),
        depthwise1_(scope.child("1").child("0"), depthwise(width)),
        point1_(scope.child("1").child("1"), {.in_channels = width, .out_channels = width}),
        last_(scope.child("2"), width, classes) {}

  at::Tensor operator()(at::Tensor const& x, Pass const& pass) const {
    auto const y = point0_(depthwise0_(x, pass), pass);
    return last_(point1_(depthwise1_(y, pass), pass), pass);
  }
  PointConv const& last() const { return last_; }

 private:
  static ConvSettings depthwise(std::int64_t channels) {
    return {.in_channels = channels,
            .out_channels = channels,
            .kernel = branch_kernel,
            .groups = channels};
  }

  ConvNorm depthwise0_;
  ConvNorm point0_;
  ConvNorm depthwise1_;
  ConvNorm point1_;
  PointConv last_;
};

class Detect : public Head {
 public:
  Detect(Scope const& scope, std::vector<Feature> inputs, std::int64_t classes)
      : inputs_(std::move(inputs)), classes_(classes) {
    // Widths of the branches: spec/model.md, section 4, Detect.
    constexpr std::int64_t least_box_width = 16;
    constexpr std::int64_t most_class_width = 100;
    auto const finest = inputs_.front().channels;
    auto const box_width = std::max({least_box_width, finest / 4, 4 * distance_bins});
    auto const class_width = std::max(finest, std::min(classes, most_class_width));
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      boxes_.emplace_back(scope.child("cv2").child(i), inputs_[i].channels, box_width);
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      scores_.emplace_back(scope.child("cv3").child(i), inputs_[i].channels, class_width, classes);
    }
    bins_ =
        scope.child("dfl").child("conv").add("weight", {1, distance_bins, 1, 1}, StateKind::frozen);
    bins_.copy_(at::arange(distance_bins).view(bins_.sizes()));
  }

  HeadOutput forward(std::vector<at::Tensor> const& inputs, Pass const& pass) const override {
    std::vector<at::Tensor> boxes;
    std::vector<at::Tensor> scores;
    std::vector<Level> levels;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      boxes.push_back(boxes_[i](inputs[i], pass).flatten(2));
      scores.push_back(scores_[i](inputs[i], pass).flatten(2));
      levels.push_back({inputs[i].size(2), inputs[i].size(3), inputs_[i].stride_px});
    }
    return {at::cat(boxes, 2), at::cat(scores, 2), levels};
  }

  void initialise_biases() override {
    // Source: spec/model.md, section 6: five objects on an image of 640 px.
    constexpr double box_bias = 2;
    constexpr double objects = 5;
    constexpr double image_px = 640;
    at::NoGradGuard const no_grad;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      double const cells = std::pow(image_px / static_cast<double>(inputs_[i].stride_px), 2);
      boxes_[i].last().bias().fill_(box_bias);
      scores_[i].last().bias().fill_(std::log(objects / static_cast<double>(classes_) / cells));
    }
  }

  std::string class_branch() const override { return "cv3."; }
  std::int64_t decode_flops_per_anchor() const override { return 2 * 4 * distance_bins; }

 private:
  std::vector<Feature> inputs_;
  std::int64_t classes_;
  std::vector<BoxBranch> boxes_;
  std::vector<ClassBranch> scores_;
  at::Tensor bins_;  ///< (1, R, 1, 1) 0, 1, ..., R - 1: kept for the state dict alone
};

}  // namespace

std::unique_ptr<Head> build_detect(BlockRequest const& request) {
  for (std::size_t i = 1; i < request.inputs.size(); ++i) {
    if (request.inputs[i].stride_px > request.inputs[i - 1].stride_px) continue;
    request.fail("inputs have strides of ", request.inputs[i - 1].stride_px, " and ",
                 request.inputs[i].stride_px, " px in this order. Name the finest map first.");
  }
  return std::make_unique<Detect>(request.scope, request.inputs, request.classes);
}

}  // namespace yolohpc::model
