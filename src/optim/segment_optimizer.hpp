// What the optimizers share: segments sorted into lists by group, and the state tensors beside
// them.
#pragma once

#include <map>
#include <vector>

#include "yolohpc/optim/optimizer.hpp"

namespace yolohpc::optim {

/// Zero (S) tensors like the parameters of the segments.
std::vector<at::Tensor> zeros_like_segments(std::vector<Segment> const& segments);

/// \throws Error  as make_sgd; an empty list
void check_segments(std::vector<Segment> const& segments);

/// The segments of one group as the lists that ATen's fused kernels take; they share memory.
struct GroupLists {
  std::vector<at::Tensor> params;
  std::vector<at::Tensor> grads;
  std::vector<std::vector<at::Tensor>> states;  ///< one list per role
};

/// \param states  per role, per segment
std::map<int, GroupLists> lists_by_group(std::vector<Segment> const& segments,
                                         std::vector<std::vector<at::Tensor>> const& states);

/// The entry of a group. \throws Error  it has none
GroupHyper const& hyper_of(std::span<GroupHyper const> groups, int group);

/// Nesterov SGD on segments; also the second half of MuSGD.
class SegmentSgd {
 public:
  explicit SegmentSgd(std::vector<Segment> const& segments);
  void step(std::span<GroupHyper const> groups, at::Tensor const& found_inf);
  /// (S) per segment.
  std::vector<at::Tensor> const& momentum() const { return momentum_; }

 private:
  std::vector<at::Tensor> momentum_;
  std::map<int, GroupLists> lists_;
};

/// Counts a step unless found_inf is 1.
void count_step(at::Tensor const& steps, at::Tensor const& found_inf);

}  // namespace yolohpc::optim
