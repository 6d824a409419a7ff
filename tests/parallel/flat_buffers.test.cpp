// Flat buffers: layout, values, gradients that stay in place, state that knows no layout.
#include "yolohpc/parallel/flat_buffers.hpp"

#include <set>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::parallel {
namespace {

at::Tensor counting(at::IntArrayRef sizes, double start) {
  std::int64_t numel = 1;
  for (auto const extent : sizes) numel *= extent;
  return (at::arange(numel, at::kFloat) + start).reshape(sizes);
}

at::Tensor leaf(at::Tensor const& values) {
  return values.clone().requires_grad_(true);
}

// Two convolutions with a depth-wise one between, as in the network: weights of group 0, scales of
// group 1, biases of group 2.
std::vector<FlatParameter> small_network() {
  return {
      {"a.weight", leaf(counting({4, 3, 3, 3}, 1)), 0, 0},
      {"a.scale", leaf(counting({4}, 1000)), 1, 1},
      {"a.bias", leaf(counting({4}, 2000)), 2, 2},
      {"b.weight", leaf(counting({4, 1, 3, 3}, 3000)), 0, 3},
      {"b.bias", leaf(counting({4}, 4000)), 2, 4},
      {"c.weight", leaf(counting({5, 4, 1, 1}, 5000)), 0, 5},
      {"c.bias", leaf(counting({5}, 6000)), 2, 6},
  };
}

at::Tensor run(std::vector<FlatParameter> const& p, at::Tensor const& x) {
  auto y = at::conv2d(x, p[0].tensor, {}, 1, 1) * p[1].tensor.reshape({1, 4, 1, 1}) +
           p[2].tensor.reshape({1, 4, 1, 1});
  y = at::conv2d(at::relu(y * 1e-3), p[3].tensor, p[4].tensor, 1, 1, 1, 4);
  y = at::conv2d(at::sigmoid(y * 1e-5), p[5].tensor, p[6].tensor);
  return (y * y).sum() * 1e-6;
}

FlatSettings bucket_settings(std::int64_t bucket_bytes) {
  FlatSettings settings;
  settings.bucket_bytes = bucket_bytes;
  return settings;
}

TEST(FlatBuffers, KeepValuesAndIdentity) {
  auto const parameters = small_network();
  std::vector<at::Tensor> before;
  for (auto const& p : parameters) before.push_back(p.tensor.detach().clone());
  FlatBuffers const flat(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(parameters[i].tensor, before[i])) << parameters[i].name;
    EXPECT_TRUE(parameters[i].tensor.storage().is_alias_of(flat.parameters().storage()));
    EXPECT_TRUE(parameters[i].tensor.is_leaf() && parameters[i].tensor.requires_grad());
  }
}

TEST(FlatBuffers, AlignAndPadWithZeros) {
  auto const parameters = small_network();
  FlatBuffers const flat(parameters);
  std::int64_t end = 0;
  double sum = 0;
  for (auto const& slot : flat.slots()) {
    EXPECT_EQ(slot.begin % FlatBuffers::alignment_elements, 0);
    EXPECT_GE(slot.begin, end);
    end = slot.begin + slot.numel;
  }
  for (auto const& p : parameters) sum += p.tensor.sum(at::kDouble).item<double>();
  EXPECT_EQ(flat.parameters().sum(at::kDouble).item<double>(), sum);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(flat.parameters().data_ptr()) % 64, 0u);
}

TEST(FlatBuffers, GiveConvolutionWeightsChannelsLastStrides) {
  auto const parameters = small_network();
  FlatBuffers const flat(parameters);
  EXPECT_TRUE(parameters[0].tensor.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(parameters[0].tensor.is_contiguous());
  EXPECT_EQ(parameters[0].tensor.strides(), at::IntArrayRef({27, 1, 9, 3}));
}

TEST(FlatBuffers, RowMajorOnRequest) {
  auto const parameters = small_network();
  FlatSettings settings;
  settings.layout = WeightLayout::row_major;
  FlatBuffers const flat(parameters, settings);
  EXPECT_TRUE(parameters[0].tensor.is_contiguous());
}

TEST(FlatBuffers, FirstBucketHoldsWhatIsUsedLast) {
  auto const parameters = small_network();
  FlatBuffers const flat(parameters, bucket_settings(1));
  ASSERT_EQ(flat.buckets().size(), parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(flat.slots()[i].name, parameters[parameters.size() - 1 - i].name);
    EXPECT_EQ(flat.slots()[i].bucket, static_cast<int>(i));
  }
}

TEST(FlatBuffers, BucketsCoverTheBufferWithinTheLimit) {
  for (std::int64_t const limit : {1, 64, 100, 200, 700, 1000000}) {
    auto const parameters = small_network();
    FlatBuffers const flat(parameters, bucket_settings(limit));
    std::int64_t end = 0;
    for (auto const& bucket : flat.buckets()) {
      EXPECT_EQ(bucket.begin, end);
      end += bucket.numel;
      std::int64_t bytes = 0;
      int count = 0;
      for (auto const& slot : flat.slots()) {
        if (slot.bucket != bucket.bucket) continue;
        bytes += slot.numel * 4;
        ++count;
      }
      EXPECT_TRUE(count == 1 || bytes <= limit) << "limit " << limit << ", bucket " << bytes;
    }
    EXPECT_EQ(end, flat.parameters().numel());
  }
}

TEST(FlatBuffers, SmallNetworksAreCutIntoSeveralBuckets) {
  auto const parameters = small_network();
  FlatSettings settings;
  settings.least_buckets = 4;
  settings.least_bucket_bytes = 16;
  FlatBuffers const flat(parameters, settings);
  EXPECT_GE(flat.buckets().size(), 3u);
}

TEST(FlatBuffers, GroupRangesAreFewAndDisjoint) {
  auto const parameters = small_network();
  FlatSettings settings;
  settings.least_bucket_bytes = 1 << 20;
  settings.bucket_bytes = 1 << 20;
  FlatBuffers const flat(parameters, settings);
  ASSERT_EQ(flat.buckets().size(), 1u);
  ASSERT_EQ(flat.group_ranges().size(), 3u);
  std::int64_t end = 0;
  for (auto const& range : flat.group_ranges()) {
    EXPECT_EQ(range.begin, end);
    end += range.numel;
    for (auto const& slot : flat.slots()) {
      bool const is_inside = slot.begin >= range.begin && slot.begin < end;
      EXPECT_EQ(is_inside, slot.group == range.group) << slot.name;
    }
  }
  EXPECT_EQ(end, flat.parameters().numel());
}

// The oracle is the same network with ordinary tensors.
TEST(FlatBuffers, GradientsAccumulateInPlaceAndAreRight) {
  auto const plain = small_network();
  auto const parameters = small_network();
  FlatBuffers flat(parameters, bucket_settings(300));
  auto const x = counting({2, 3, 6, 5}, -90).contiguous(at::MemoryFormat::ChannelsLast) * 0.01;
  for (int pass = 0; pass < 2; ++pass) {
    run(plain, x).backward();
    run(parameters, x).backward();
    flat.check_gradients_in_place();
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    auto const& gradient = parameters[i].tensor.grad();
    EXPECT_TRUE(at::allclose(gradient, plain[i].tensor.grad(), 1e-5, 1e-6)) << plain[i].name;
    EXPECT_GT(gradient.abs().sum().item<float>(), 0) << plain[i].name;
  }
  EXPECT_NE(flat.gradients().abs().sum().item<float>(), 0);
  flat.zero_grad();
  for (auto const& p : parameters) {
    EXPECT_EQ(p.tensor.grad().abs().sum().item<float>(), 0) << p.name;
  }
  flat.check_gradients_in_place();
}

TEST(FlatBuffers, PaddingStaysZeroInABackwardPass) {
  auto const parameters = small_network();
  FlatBuffers const flat(parameters);
  run(parameters, counting({1, 3, 6, 5}, 0) * 0.01).backward();
  std::set<std::int64_t> used;
  for (auto const& slot : flat.slots()) {
    for (std::int64_t i = 0; i < slot.numel; ++i) used.insert(slot.begin + i);
  }
  auto const* gradients = flat.gradients().const_data_ptr<float>();
  for (std::int64_t i = 0; i < flat.gradients().numel(); ++i) {
    if (used.contains(i)) continue;
    EXPECT_EQ(gradients[i], 0) << i;
  }
}

TEST(FlatBuffers, ReplacedGradientIsFound) {
  auto const parameters = small_network();
  FlatBuffers const flat(parameters);
  parameters[3].tensor.mutable_grad() = at::zeros_like(parameters[3].tensor);
  try {
    flat.check_gradients_in_place();
    FAIL() << "a replaced gradient passed";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("b.weight"), std::string::npos) << error.what();
  }
  parameters[3].tensor.mutable_grad().reset();
  EXPECT_THROW(flat.check_gradients_in_place(), base::Error);
}

TEST(FlatBuffers, StateTravelsBetweenLayouts) {
  auto const first = small_network();
  auto const second = small_network();
  FlatSettings settings = bucket_settings(1);
  settings.layout = WeightLayout::row_major;
  FlatBuffers const a(first);
  FlatBuffers const b(second, settings);
  auto const exported = a.export_flat(a.parameters(), ".m");
  ASSERT_EQ(exported.size(), first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(exported[i].name, first[i].name + ".m");
    EXPECT_TRUE(exported[i].tensor.storage().is_alias_of(a.parameters().storage()));
    EXPECT_TRUE(at::equal(exported[i].tensor, small_network()[i].tensor));
  }
  auto const moment = b.make_flat();
  b.import_flat(exported, moment, ".m");
  EXPECT_TRUE(at::equal(moment, b.parameters()));
  auto const back = b.export_flat(moment);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(at::equal(back[i].tensor, exported[i].tensor));
  }
}

TEST(FlatBuffers, ForeignStateIsRefusedByName) {
  auto const parameters = small_network();
  FlatBuffers const flat(parameters);
  auto state = flat.export_flat(flat.parameters());
  auto const moment = flat.make_flat();
  state[2].tensor = at::zeros({7});
  try {
    flat.import_flat(state, moment);
    FAIL() << "a wrong shape passed";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("a.bias has shape [7]"), std::string::npos)
        << error.what();
  }
  state.erase(state.begin() + 2);
  EXPECT_THROW(flat.import_flat(state, moment), base::Error);
}

void expect_refused(std::vector<FlatParameter> const& parameters, std::string const& text) {
  try {
    FlatBuffers const flat(parameters);
    FAIL() << "accepted; expected: " << text;
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(FlatBuffers, WrongParametersAreRefused) {
  expect_refused({}, "no parameter to train");
  auto parameters = small_network();
  parameters[1].name = "a.weight";
  expect_refused(parameters, "two parameters are called a.weight");
  parameters = small_network();
  parameters[1].tensor = at::zeros({4});
  expect_refused(parameters, "a.scale does not train");
  parameters = small_network();
  parameters[1].tensor = leaf(at::zeros({4}, at::kDouble));
  expect_refused(parameters, "a.scale is CPUDoubleType");
  parameters = small_network();
  parameters[1].group = -1;
  expect_refused(parameters, "group -1");
}

}  // namespace
}  // namespace yolohpc::parallel
