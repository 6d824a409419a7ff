// Gradients over ranks: exact sums, unused parameters, accumulation, overlap inside the backward
// pass.
#include "yolohpc/parallel/reducer.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/comm/world.hpp"

namespace yolohpc::parallel {
namespace {

constexpr int layers = 6;
constexpr std::int64_t width = 20;

// A chain whose gradients are small integers: layer i multiplies by its weight, all weights are 1,
// so the gradient of element j of every layer is the input's element j (plus that of a bias, which
// is 1).
struct Chain {
  std::vector<FlatParameter> parameters;
  Chain() {
    for (int layer = 0; layer < layers; ++layer) {
      auto const name = "layer" + std::to_string(layer);
      parameters.push_back(
          {name + ".weight", at::ones({width}).requires_grad_(true), 0, 2 * layer});
      parameters.push_back(
          {name + ".unused", at::ones({3}).requires_grad_(true), 1, 2 * layer + 1});
    }
  }
  at::Tensor weight(int layer) const {
    return parameters[static_cast<std::size_t>(2 * layer)].tensor;
  }
  at::Tensor extra(int layer) const {
    return parameters[static_cast<std::size_t>(2 * layer + 1)].tensor;
  }
  // With `extras`, the gradient of each "unused" parameter is 2.
  void backward(at::Tensor const& x, bool extras) const {
    auto y = x;
    for (int layer = 0; layer < layers; ++layer) y = y * weight(layer);
    auto loss = y.sum();
    for (int layer = 0; layer < layers && extras; ++layer) loss = loss + 2 * extra(layer).sum();
    loss.backward();
  }
};

FlatSettings buckets_of(std::int64_t bucket_bytes) {
  FlatSettings settings;
  settings.bucket_bytes = bucket_bytes;
  settings.least_bucket_bytes = bucket_bytes;
  return settings;
}

at::Tensor input_of(int rank, int micro_batch = 0) {
  return at::arange(width, at::kFloat) + 100 * rank + 1000 * micro_batch;
}

at::Tensor sum_of_inputs(int size, int micro_batches = 1) {
  auto sum = at::zeros({width});
  for (int rank = 0; rank < size; ++rank) {
    for (int micro = 0; micro < micro_batches; ++micro) sum += input_of(rank, micro);
  }
  return sum;
}

class ReducerTest : public ::testing::Test {
 protected:
  comm::World world_;
  std::unique_ptr<comm::Communicator> communicator_ = comm::make_mpi_communicator(world_);
};

TEST_F(ReducerTest, SumsAreExactForEveryBucketSize) {
  for (std::int64_t const bucket_bytes : {1, 100, 200, 500, 1 << 20}) {
    for (auto const overlap : {Overlap::off, Overlap::on}) {
      Chain const chain;
      FlatBuffers flat(chain.parameters, buckets_of(bucket_bytes));
      Reducer reducer(flat, *communicator_, {overlap, GradientRule::sum});
      for (int step = 0; step < 3; ++step) {
        flat.zero_grad();
        reducer.begin_micro_batch(MicroBatch::last);
        chain.backward(input_of(world_.rank()), true);
        auto const report = reducer.finish();
        for (int layer = 0; layer < layers; ++layer) {
          EXPECT_TRUE(at::equal(chain.weight(layer).grad(), sum_of_inputs(world_.size())))
              << "layer " << layer << ", bucket bytes " << bucket_bytes << ", step " << step;
          EXPECT_TRUE(at::equal(chain.extra(layer).grad(), at::full({3}, 2.0F * world_.size())));
        }
        auto const all = static_cast<int>(flat.buckets().size());
        bool const is_overlapped = overlap == Overlap::on && world_.size() > 1;
        EXPECT_EQ(report.buckets_in_backward, is_overlapped ? all : 0);
        EXPECT_EQ(report.bytes, world_.size() > 1 ? flat.gradients().numel() * 4 : 0);
      }
    }
  }
}

TEST_F(ReducerTest, AverageDividesByTheRanks) {
  Chain const chain;
  FlatBuffers flat(chain.parameters, buckets_of(200));
  Reducer reducer(flat, *communicator_, {Overlap::on, GradientRule::average});
  reducer.begin_micro_batch(MicroBatch::last);
  chain.backward(input_of(world_.rank()), true);
  reducer.finish();
  // 1, 2 and 4 ranks: the division is exact.
  EXPECT_TRUE(at::equal(chain.weight(0).grad(), sum_of_inputs(world_.size()) / world_.size()));
}

// Only one rank uses the parameters "unused": the others' buckets never become complete by
// themselves.
TEST_F(ReducerTest, ParameterUsedOnOneRankOnlyIsReduced) {
  for (std::int64_t const bucket_bytes : {1, 200, 1 << 20}) {
    Chain const chain;
    FlatBuffers flat(chain.parameters, buckets_of(bucket_bytes));
    Reducer reducer(flat, *communicator_);
    for (int step = 0; step < 2; ++step) {
      flat.zero_grad();
      reducer.begin_micro_batch(MicroBatch::last);
      chain.backward(input_of(world_.rank()), world_.rank() == world_.size() - 1);
      reducer.finish();
      for (int layer = 0; layer < layers; ++layer) {
        EXPECT_TRUE(at::equal(chain.weight(layer).grad(), sum_of_inputs(world_.size())));
        EXPECT_TRUE(at::equal(chain.extra(layer).grad(), at::full({3}, 2.0F)));
      }
    }
  }
}

TEST_F(ReducerTest, OnlyTheLastMicroBatchCommunicates) {
  Chain const chain;
  FlatBuffers flat(chain.parameters, buckets_of(200));
  Reducer reducer(flat, *communicator_);
  constexpr int micro_batches = 3;
  for (int step = 0; step < 2; ++step) {
    flat.zero_grad();
    for (int micro = 0; micro < micro_batches; ++micro) {
      bool const is_last = micro + 1 == micro_batches;
      if (is_last) {
        // So far this rank has only its own sum.
        EXPECT_TRUE(at::equal(chain.weight(0).grad(),
                              input_of(world_.rank(), 0) + input_of(world_.rank(), 1)));
      }
      reducer.begin_micro_batch(is_last ? MicroBatch::last : MicroBatch::more_follow);
      chain.backward(input_of(world_.rank(), micro), true);
    }
    auto const report = reducer.finish();
    EXPECT_EQ(report.bytes, world_.size() > 1 ? flat.gradients().numel() * 4 : 0);
    EXPECT_TRUE(at::equal(chain.weight(3).grad(), sum_of_inputs(world_.size(), micro_batches)));
    EXPECT_TRUE(at::equal(chain.extra(3).grad(), at::full({3}, 2.0F * 3 * world_.size())));
  }
}

// Floats that do not add exactly: the bits must not depend on when a bucket was sent.
TEST_F(ReducerTest, OverlapChangesNoBit) {
  auto const x = at::sin(at::arange(width, at::kFloat) * 0.7 + world_.rank());
  std::vector<at::Tensor> results;
  for (auto const overlap : {Overlap::off, Overlap::on}) {
    Chain const chain;
    FlatBuffers flat(chain.parameters, buckets_of(200));
    Reducer reducer(flat, *communicator_, {overlap, GradientRule::sum});
    reducer.begin_micro_batch(MicroBatch::last);
    chain.backward(x, true);
    reducer.finish();
    results.push_back(flat.gradients().clone());
  }
  EXPECT_TRUE(at::equal(results[0], results[1]));
}

TEST_F(ReducerTest, WrongOrderOfCallsIsRefused) {
  Chain const chain;
  FlatBuffers flat(chain.parameters);
  Reducer reducer(flat, *communicator_);
  EXPECT_THROW(reducer.finish(), base::Error);
  reducer.begin_micro_batch(MicroBatch::more_follow);
  EXPECT_THROW(reducer.finish(), base::Error);
  reducer.begin_micro_batch(MicroBatch::last);
  EXPECT_THROW(reducer.begin_micro_batch(MicroBatch::more_follow), base::Error);
  reducer.finish();
}

TEST_F(ReducerTest, SecondBackwardOfAMicroBatchIsRefused) {
  if (world_.size() == 1) GTEST_SKIP() << "skipped: one rank has no buckets to complete";
  Chain const chain;
  FlatBuffers flat(chain.parameters, buckets_of(200));
  Reducer reducer(flat, *communicator_);
  reducer.begin_micro_batch(MicroBatch::last);
  chain.backward(input_of(world_.rank()), true);
  try {
    chain.backward(input_of(world_.rank()), true);
    ADD_FAILURE() << "a gradient was added to a bucket under way";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("after its bucket was complete"), std::string::npos)
        << error.what();
  }
  reducer.finish();
}

TEST_F(ReducerTest, HooksGoWithTheReducer) {
  Chain const chain;
  FlatBuffers flat(chain.parameters);
  { Reducer const reducer(flat, *communicator_); }
  Reducer const second(flat, *communicator_);
  if (world_.size() > 1) {
    EXPECT_THROW(Reducer(flat, *communicator_), base::Error);
  }
  EXPECT_EQ(torch::autograd::impl::post_acc_grad_hooks(chain.weight(0)) != nullptr,
            world_.size() > 1);
}

/// Hands everything on to another communicator and notes when a reduction is started.
class Recorder : public comm::Communicator {
 public:
  Recorder(comm::Communicator& inner, std::vector<std::string>& events)
      : Communicator({inner.rank(), inner.size(), inner.host()}), inner_(inner), events_(events) {}
  char const* backend() const override { return inner_.backend(); }
  void abort() override { inner_.abort(); }

 private:
  using Byte = std::byte;
  void check_reachable(at::Tensor const&, char const*) const override {}
  void do_all_reduce(at::Tensor const& values, comm::ReduceOp op) override {
    inner_.all_reduce_in_place(values, op);
  }
  std::unique_ptr<comm::Pending> do_all_reduce_async(at::Tensor const& values,
                                                     comm::ReduceOp op) override {
    events_.push_back("reduce " + std::to_string(values.storage_offset()));
    return inner_.all_reduce_async(values, op);
  }
  void do_reduce_scatter(at::Tensor const&, at::Tensor const&, comm::ReduceOp) override {}
  void do_all_gather(at::Tensor const&, at::Tensor const&) override {}
  void do_broadcast(at::Tensor const&, int) override {}
  void do_barrier() override {}
  std::vector<std::vector<Byte>> do_gather_bytes(std::span<Byte const>, int) override { return {}; }
  std::vector<std::vector<Byte>> do_all_gather_bytes(std::span<Byte const>) override { return {}; }
  void do_broadcast_bytes(std::vector<Byte>&, int) override {}

  comm::Communicator& inner_;
  std::vector<std::string>& events_;
};

/// Notes that the gradient of something arrives.
class Note : public torch::autograd::FunctionPreHook {
 public:
  Note(std::vector<std::string>& events, std::string text)
      : events_(events), text_(std::move(text)) {}
  torch::autograd::variable_list operator()(torch::autograd::variable_list const& grads) override {
    events_.push_back(text_);
    return grads;
  }

 private:
  std::vector<std::string>& events_;
  std::string text_;
};

// One bucket per parameter: bucket 0, of the last layer, must be on its way before the backward
// pass reaches layer 0.
TEST_F(ReducerTest, ReductionStartsInsideTheBackwardPassAndInOrder) {
  std::vector<std::string> events;
  Recorder recorder(*communicator_, events);
  Chain const chain;
  std::vector<FlatParameter> weights;
  for (int layer = 0; layer < layers; ++layer) {
    weights.push_back(chain.parameters[static_cast<std::size_t>(2 * layer)]);
  }
  FlatBuffers flat(weights, buckets_of(1));
  Reducer reducer(flat, recorder);
  for (int layer = 0; layer < layers; ++layer) {
    torch::autograd::impl::add_hook(
        chain.weight(layer), std::make_unique<Note>(events, "grad " + std::to_string(layer)));
  }
  reducer.begin_micro_batch(MicroBatch::last);
  chain.backward(input_of(world_.rank()), false);
  reducer.finish();
  std::vector<std::string> expected;
  for (int layer = layers - 1; layer >= 0; --layer) {
    expected.push_back("grad " + std::to_string(layer));
    if (world_.size() == 1) continue;
    auto const& bucket = flat.buckets()[static_cast<std::size_t>(layers - 1 - layer)];
    expected.push_back("reduce " + std::to_string(bucket.begin));
  }
  EXPECT_EQ(events, expected);
}

// The first bucket is never complete, so those after it have to wait for finish(), in order.
TEST_F(ReducerTest, LaterBucketsWaitForAnIncompleteOne) {
  if (world_.size() == 1) GTEST_SKIP() << "skipped: one rank sends nothing";
  std::vector<std::string> events;
  Recorder recorder(*communicator_, events);
  Chain const chain;
  FlatBuffers flat(chain.parameters, buckets_of(1));
  Reducer reducer(flat, recorder);
  reducer.begin_micro_batch(MicroBatch::last);
  chain.backward(input_of(world_.rank()), false);
  EXPECT_TRUE(events.empty()) << "the first bucket holds a parameter that got no gradient";
  auto const report = reducer.finish();
  EXPECT_EQ(report.buckets_in_backward, 0);
  std::vector<std::string> expected;
  for (auto const& bucket : flat.buckets()) {
    expected.push_back("reduce " + std::to_string(bucket.begin));
  }
  EXPECT_EQ(events, expected);
}

}  // namespace
}  // namespace yolohpc::parallel
