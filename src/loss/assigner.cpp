#include "yolohpc/loss/assigner.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/boxes/iou.hpp"

// m stands for the boxes taken in one turn.

namespace yolohpc::loss {
namespace {

// Source: spec/loss.md, section 3. The exponents 0.5 and 6 are written as a root and products
// below.
constexpr double inside_margin_px = 1e-9;
constexpr double norm_epsilon = 1e-9;

// About ten tensors of this many floats live at a time. On a CPU they should fit its caches: for 5
// 000 boxes and 8 400 points 2^18 took 0.6 of the time of 2^23 (one EPYC core). A GPU wants few,
// large kernels.
constexpr std::int64_t pairs_at_once_cpu = std::int64_t{1} << 18;
constexpr std::int64_t pairs_at_once_gpu = std::int64_t{1} << 23;

/// How many boxes of each image are taken in one turn.
std::int64_t boxes_per_turn(AssignerSettings const& settings, at::Tensor const& root_scores) {
  auto pairs = settings.pairs_at_once;
  if (pairs == 0) pairs = root_scores.is_cpu() ? pairs_at_once_cpu : pairs_at_once_gpu;
  return std::max<std::int64_t>(pairs / (root_scores.size(0) * root_scores.size(2)), 1);
}

/// Boxes with what each needs to know about itself; the tensors of one object share a shape.
struct BoxSide {
  boxes::Corners corners;    ///< px
  boxes::Corners candidate;  ///< px; short sides enlarged
  at::Tensor angle;
  at::Tensor valid;  ///< float, 1 or 0
};

/// Anchor points and their predictions.
struct PointSide {
  boxes::Corners corners;  ///< px, predicted
  at::Tensor angle;
  at::Tensor x, y;  ///< px
};

struct Metrics {
  at::Tensor overlap;    ///< o; 0 outside the candidates
  at::Tensor alignment;  ///< m; 0 outside the candidates
};

template <typename Function>
boxes::Corners transform(boxes::Corners const& c, Function const& f) {
  return {f(c.x1), f(c.y1), f(c.x2), f(c.y2)};
}

template <typename Function>
BoxSide transform(BoxSide const& b, Function const& f) {
  return {transform(b.corners, f), transform(b.candidate, f), f(b.angle), f(b.valid)};
}

template <typename Function>
PointSide transform(PointSide const& p, Function const& f) {
  return {transform(p.corners, f), f(p.angle), f(p.x), f(p.y)};
}

/// Both sides of a box around its centre, at least `smallest_px` long.
boxes::Corners enlarge(boxes::Corners const& box, double smallest_px) {
  auto const grow = [&](at::Tensor const& low, at::Tensor const& high) {
    auto const length = high - low;
    auto const half =
        at::where(length < smallest_px, at::full_like(length, smallest_px), length) / 2;
    auto const centre = (low + high) / 2;
    return std::pair{centre - half, centre + half};
  };
  auto const [x1, x2] = grow(box.x1, box.x2);
  auto const [y1, y2] = grow(box.y1, box.y2);
  return {x1, y1, x2, y2};
}

BoxSide describe_boxes(AssignerInput const& input) {
  auto const corners = boxes::split_corners(input.boxes_px);
  return {corners, enlarge(corners, input.smallest_side_px), boxes::aspect_angle(corners),
          input.valid.to(at::kFloat)};
}

PointSide describe_points(AssignerInput const& input) {
  auto const corners = boxes::split_corners(input.predicted_px, 1);
  return {corners, boxes::aspect_angle(corners), input.points_px.select(0, 0),
          input.points_px.select(0, 1)};
}

/// 1 where a valid box has the point inside its candidate area, else 0.
at::Tensor candidates(BoxSide const& box, PointSide const& point) {
  auto const x_margin = at::minimum(point.x - box.candidate.x1, box.candidate.x2 - point.x);
  auto const y_margin = at::minimum(point.y - box.candidate.y1, box.candidate.y2 - point.y);
  return at::minimum(x_margin, y_margin).gt(inside_margin_px).to(at::kFloat).mul_(box.valid);
}

/// Rules 1 and 2. \param root_score  sqrt(sigmoid(score)) of the box's class at the point
///
/// Only sums, products, quotients and comparisons: a pair has the same value in whatever shape it
/// comes, so taking the boxes in turns changes nothing.
Metrics measure(BoxSide const& box, PointSide const& point, at::Tensor const& root_score) {
  auto overlap = boxes::complete_iou(box.corners, box.angle, point.corners, point.angle)
                     .clamp_min_(0)
                     .mul_(candidates(box, point));
  auto alignment = overlap * overlap;
  alignment = (alignment * alignment).mul_(alignment).mul_(root_score);
  return {overlap, alignment};
}

/// What the turns leave behind, per anchor point: (B, A).
struct Selection {
  at::Tensor count;         ///< boxes that selected the point
  at::Tensor last_box;      ///< the highest of them, -1 if none
  at::Tensor best_overlap;  ///< largest overlap with any box
  at::Tensor best_box;      ///< the lowest box that has it
};

Selection nothing_selected(std::int64_t images, std::int64_t points, at::Device device) {
  auto const integers = at::TensorOptions().dtype(at::kLong).device(device);
  return {at::zeros({images, points}, integers), at::full({images, points}, -1, integers),
          at::full({images, points}, -1.0, integers.dtype(at::kFloat)),
          at::zeros({images, points}, integers)};
}

/// Rule 3 for boxes `first` ... of every image, and the part of rule 4 that looks at all boxes.
/// \param metrics  (B, m, A)
void add_to_selection(Selection& selection, Metrics const& metrics, std::int64_t first,
                      std::int64_t top_k) {
  auto const length = std::min(top_k, metrics.alignment.size(2));
  auto const [values, points] = metrics.alignment.topk(length, 2);  // (B, m, k)
  auto const selected = values.gt(0).to(at::kLong);
  auto const flat_points = points.flatten(1);
  selection.count.scatter_add_(1, flat_points, selected.flatten(1));
  auto const rows =
      at::arange(first, first + values.size(1), selected.options()).add_(1).view({-1, 1});
  selection.last_box.scatter_reduce_(1, flat_points, (selected * rows).sub_(1).flatten(1), "amax");

  auto const [overlap, box] = metrics.overlap.max(1);
  auto const better = overlap > selection.best_overlap;
  selection.best_box = at::where(better, box + first, selection.best_box);
  selection.best_overlap = at::maximum(overlap, selection.best_overlap);
}

/// The columns `index` (B, A) of every tensor of shape (B, M).
BoxSide gather_boxes(BoxSide const& all, at::Tensor const& index) {
  return transform(all, [&](at::Tensor const& t) { return t.gather(1, index); });
}

/// Rules 1 to 4 over all boxes, in turns of bounded size.
Selection select_boxes(BoxSide const& all, PointSide const& points, at::Tensor const& root_scores,
                       at::Tensor const& labels, AssignerSettings const& settings) {
  auto const images = root_scores.size(0);
  auto const point_count = root_scores.size(2);
  auto const box_count = labels.size(1);
  auto const turn = boxes_per_turn(settings, root_scores);
  auto const per_point = transform(points, [](at::Tensor const& t) {  // (B, 1, A) or (1, A)
    return t.unsqueeze(-2);
  });
  auto selection = nothing_selected(images, point_count, root_scores.device());
  for (std::int64_t first = 0; first < box_count; first += turn) {
    auto const taken = std::min(turn, box_count - first);
    auto const boxes =
        transform(all, [&](at::Tensor const& t) { return t.narrow(1, first, taken).unsqueeze(2); });
    auto const rows = labels.narrow(1, first, taken).unsqueeze(2);
    auto const scores = root_scores.gather(1, rows.expand({images, taken, point_count}));
    add_to_selection(selection, measure(boxes, per_point, scores), first, settings.top_k);
  }
  return selection;
}

/// Rule 6: the alignment of each point, scaled so that the best point of a box gets its largest
/// overlap.
at::Tensor soft_scores(Metrics const& assigned, at::Tensor const& box_index,
                       std::int64_t box_count) {
  auto const largest = [&](at::Tensor const& values) {
    return at::zeros({values.size(0), box_count}, values.options())
        .scatter_reduce_(1, box_index, values, "amax")
        .gather(1, box_index);
  };
  return assigned.alignment * largest(assigned.overlap) /
         (largest(assigned.alignment) + norm_epsilon);
}

void check_shapes(AssignerInput const& input) {
  auto const images = input.scores.size(0);
  auto const points = input.scores.size(2);
  YOLOHPC_CHECK(input.predicted_px.sizes() == at::IntArrayRef({images, 4, points}) &&
                    input.points_px.sizes() == at::IntArrayRef({2, points}),
                "predicted boxes have shape ", input.predicted_px.sizes(), " and points ",
                input.points_px.sizes(), ", scores ", input.scores.sizes(),
                ": they need (B, 4, A), (2, A) and (B, C, A).");
  auto const boxes = input.boxes_px.size(1);
  YOLOHPC_CHECK(input.boxes_px.sizes() == at::IntArrayRef({images, boxes, 4}) &&
                    input.labels.sizes() == at::IntArrayRef({images, boxes}) &&
                    input.valid.sizes() == at::IntArrayRef({images, boxes}),
                "boxes have shape ", input.boxes_px.sizes(), ", labels ", input.labels.sizes(),
                ", valid ", input.valid.sizes(),
                ": they need (B, M, 4), (B, M) and (B, M) with B = ", images, ".");
}

Assignment no_boxes(AssignerInput const& input) {
  auto const weight =
      at::zeros({input.scores.size(0), input.scores.size(2)}, input.scores.options());
  auto const zeros = at::zeros_like(weight, at::kLong);
  return {zeros.to(at::kBool), zeros, zeros, weight};
}

}  // namespace

Assignment assign(AssignerInput const& input, AssignerSettings const& settings) {
  at::NoGradGuard const no_grad;
  check_shapes(input);
  auto const box_count = input.boxes_px.size(1);
  if (box_count == 0) return no_boxes(input);
  auto const boxes = describe_boxes(input);
  auto const points = describe_points(input);
  auto const labels = input.labels.clamp_min(0);
  auto const root_scores = input.scores.sigmoid().sqrt_();
  auto const selection = select_boxes(boxes, points, root_scores, labels, settings);

  auto const foreground = selection.count > 0;
  auto const box_index = at::where(selection.count > 1, selection.best_box, selection.last_box)
                             .clamp_min_(0);  // (B, A)
  auto const label = labels.gather(1, box_index);
  auto const score = root_scores.gather(1, label.unsqueeze(1)).squeeze(1);
  auto assigned = measure(gather_boxes(boxes, box_index), points, score);
  assigned.overlap.mul_(foreground);
  assigned.alignment.mul_(foreground);
  return {foreground, box_index, label, soft_scores(assigned, box_index, box_count)};
}

}  // namespace yolohpc::loss
