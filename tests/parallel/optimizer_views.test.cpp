// The bridge between flat buffers and optimizer: segments, kernels, state without a layout.
#include "yolohpc/parallel/optimizer_views.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::parallel {
namespace {

at::Tensor leaf(at::IntArrayRef sizes, double start) {
  std::int64_t numel = 1;
  for (auto const extent : sizes) numel *= extent;
  return (at::arange(numel, at::kFloat) + start).reshape(sizes).requires_grad_(true);
}

std::vector<FlatParameter> parameters() {
  return {{"a.weight", leaf({4, 3, 3, 3}, 1), 0, 0},
          {"a.bias", leaf({4}, 200), 1, 1},
          {"b.weight", leaf({2, 4, 1, 1}, 300), 0, 2},
          {"b.bias", leaf({2}, 400), 1, 3}};
}

// Keeps one number per element and none for group 1, as MuSGD does for a role of the kernels.
class OneRole : public optim::Optimizer {
 public:
  explicit OneRole(std::vector<optim::Segment> const& segments) {
    steps_ = at::zeros({}, at::kFloat);
    for (auto const& segment : segments) {
      state_.push_back(segment.group == 0 ? at::zeros_like(segment.param) : at::Tensor());
    }
  }
  optim::OptimizerKind kind() const override { return optim::OptimizerKind::sgd; }
  void step(std::span<optim::GroupHyper const>, at::Tensor const&) override {}
  std::vector<optim::RoleState> state() const override { return {{"momentum", state_}}; }

 private:
  std::vector<at::Tensor> state_;
};

FlatSettings one_parameter_per_bucket() {
  FlatSettings settings;
  settings.bucket_bytes = 1;
  return settings;
}

TEST(OptimizerViews, SegmentsCoverTheBufferInMemory) {
  FlatBuffers const flat(parameters());
  std::int64_t numel = 0;
  for (auto const& segment : make_segments(flat)) {
    EXPECT_TRUE(segment.param.is_contiguous() && segment.grad.is_contiguous());
    EXPECT_TRUE(segment.param.storage().is_alias_of(flat.parameters().storage()));
    EXPECT_TRUE(segment.grad.storage().is_alias_of(flat.gradients().storage()));
    EXPECT_EQ(segment.param.storage_offset(), segment.grad.storage_offset());
    numel += segment.param.numel();
  }
  EXPECT_EQ(numel, flat.parameters().numel());
}

TEST(OptimizerViews, KernelsAreTheMuonParameters) {
  FlatBuffers const flat(parameters());
  std::vector<optim::ParameterGroup> groups(2);
  groups[0].kind = optim::GroupKind::muon;
  groups[1].kind = optim::GroupKind::bias;
  auto const kernels = make_kernels(flat, groups);
  ASSERT_EQ(kernels.size(), 2u);
  for (auto const& kernel : kernels) {
    EXPECT_EQ(kernel.param.dim(), 4);
    EXPECT_TRUE(kernel.grad.storage().is_alias_of(flat.gradients().storage()));
  }
  groups[0].kind = optim::GroupKind::weight;
  EXPECT_TRUE(make_kernels(flat, groups).empty());
}

TEST(OptimizerViews, StateTravelsBetweenLayouts) {
  FlatBuffers const a(parameters());
  FlatBuffers const b(parameters(), one_parameter_per_bucket());
  OneRole const saved(make_segments(a));
  OneRole const loaded(make_segments(b));
  saved.steps().fill_(7);
  auto const ranges = a.group_ranges();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    auto const state = saved.state()[0].of_segment[i];
    if (state.defined()) state.copy_(a.slice(a.parameters(), ranges[i]));
  }
  auto const exported = export_optimizer(a, saved);
  ASSERT_EQ(exported.size(), 3u);
  EXPECT_TRUE(
      at::equal(base::find_tensor(exported, "optimizer.momentum.a.weight"), leaf({4, 3, 3, 3}, 1)));
  EXPECT_TRUE(at::equal(base::find_tensor(exported, "optimizer.momentum.b.weight"),
                        leaf({2, 4, 1, 1}, 300)));
  import_optimizer(b, exported, loaded);
  EXPECT_EQ(loaded.steps().item<float>(), 7);
  auto const again = export_optimizer(b, loaded);
  ASSERT_EQ(again.size(), exported.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].name, exported[i].name);
    EXPECT_TRUE(at::equal(again[i].tensor, exported[i].tensor)) << again[i].name;
  }
}

TEST(OptimizerViews, StateOfAnotherOptimizerIsRefused) {
  FlatBuffers const flat(parameters());
  OneRole const optimizer(make_segments(flat));
  auto state = export_optimizer(flat, optimizer);
  state.erase(state.begin());
  try {
    import_optimizer(flat, state, optimizer);
    FAIL() << "an incomplete state passed";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("optimizer.momentum.a.weight"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace yolohpc::parallel
