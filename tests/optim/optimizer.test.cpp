#include "yolohpc/optim/optimizer.hpp"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::optim {
namespace {

using Values = std::vector<double>;

/// Reproducible values in [-1, 1).
at::Tensor values_of(std::string const& name, std::int64_t count) {
  return testing::formula_state(name + ".bias", {count}, 7) * 2;
}

Values to_doubles(at::Tensor const& t) {
  auto const d = t.to(at::kDouble).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}

/// Two groups in one flat buffer: `decaying` elements that decay, 21 that do not. Both end in the
/// middle of a vector register by default.
struct Problem {
  explicit Problem(std::int64_t decaying_elements = 37) : decaying(decaying_elements) {}

  std::int64_t decaying;
  std::int64_t all = decaying + 21;
  at::Tensor param = values_of("param", all).clone();
  at::Tensor grad = at::zeros({all});
  std::vector<GroupHyper> hyper = {{0.02, 0.05, 0.9}, {0.1, 0.0, 0.8}};

  std::vector<Segment> segments() const {
    return {{param.slice(0, 0, decaying), grad.slice(0, 0, decaying), 0},
            {param.slice(0, decaying), grad.slice(0, decaying), 1}};
  }
  void set_gradient(int step) { grad.copy_(values_of(base::join("grad", step), all)); }
  GroupHyper const& hyper_at(std::size_t i) const {
    return hyper[i < static_cast<std::size_t>(decaying) ? 0 : 1];
  }
};

constexpr int steps_tested = 7;

void expect_values(at::Tensor const& got, Values expected) {
  auto const want = at::from_blob(expected.data(), {static_cast<std::int64_t>(expected.size())},
                                  at::TensorOptions().dtype(at::kDouble));
  testing::expect_close(got, want, 1e-6, 1e-6, "parameters after the steps");  // float32, 7 steps
}

TEST(Sgd, FollowsTheFormulaInDouble) {
  Problem problem;
  auto p = to_doubles(problem.param);
  Values v(p.size());
  auto const sgd = make_sgd(problem.segments());
  for (int step = 0; step < steps_tested; ++step) {
    problem.set_gradient(step);
    auto const grads = to_doubles(problem.grad);
    for (std::size_t i = 0; i < p.size(); ++i) {
      auto const& h = problem.hyper_at(i);
      double const g = grads[i] + h.weight_decay * p[i];
      v[i] = h.momentum * v[i] + g;
      p[i] -= h.lr * (g + h.momentum * v[i]);
    }
    sgd->step(problem.hyper, {});
  }
  expect_values(problem.param, p);
}

// A warm-up of the momentum may start at 0: there v becomes g.
TEST(Sgd, TakesMomentumZero) {
  Problem problem;
  problem.hyper = {{0.5, 0.0, 0.0}, {0.5, 0.0, 0.0}};
  auto const before = problem.param.clone();
  auto const sgd = make_sgd(problem.segments());
  for (int step = 0; step < 2; ++step) {
    problem.set_gradient(step);
    sgd->step(problem.hyper, {});
  }
  auto const sum = values_of("grad0", problem.all) + values_of("grad1", problem.all);
  testing::expect_close(problem.param, before - 0.5 * sum, 1e-6, 1e-6, "plain gradient descent");
  EXPECT_TRUE(at::equal(sgd->state()[0].of_segment[1], problem.grad.slice(0, 37)));
}

TEST(AdamW, FollowsTheFormulaInDouble) {
  Problem problem;
  auto p = to_doubles(problem.param);
  Values m(p.size());
  Values v(p.size());
  auto const adamw = make_adamw(problem.segments());
  for (int step = 0; step < steps_tested; ++step) {
    problem.set_gradient(step);
    auto const grads = to_doubles(problem.grad);
    for (std::size_t i = 0; i < p.size(); ++i) {
      auto const& h = problem.hyper_at(i);
      p[i] *= 1 - h.lr * h.weight_decay;
      m[i] = h.momentum * m[i] + (1 - h.momentum) * grads[i];
      v[i] = 0.999 * v[i] + (1 - 0.999) * grads[i] * grads[i];
      double const correction1 = 1 - std::pow(h.momentum, step + 1);
      double const correction2 = std::sqrt(1 - std::pow(0.999, step + 1));
      p[i] -= h.lr / correction1 * m[i] / (std::sqrt(v[i]) / correction2 + 1e-8);
    }
    adamw->step(problem.hyper, {});
  }
  expect_values(problem.param, p);
}

// spec/golden.md section 7: no trajectory tells whether AdamW decays at all, nor whether only
// weights do.
TEST(AdamW, WithoutGradientDecaysOnlyTheGroupThatDecays) {
  Problem problem;
  auto const before = problem.param.clone();
  make_adamw(problem.segments())->step(problem.hyper, {});
  auto const expected = before.narrow(0, 0, 37) * (1 - 0.02 * 0.05);
  testing::expect_close(problem.param.narrow(0, 0, 37), expected, 1e-7, 0, "decayed weights");
  EXPECT_TRUE(at::equal(problem.param.slice(0, 37), before.slice(0, 37)));
}

/// Dense 4-D kernels for MuSGD in the first segment: 27 of its 37 elements, then padding.
std::vector<KernelSlot> kernels_of(Problem const& problem) {
  auto const view = [](at::Tensor const& flat, std::int64_t begin) {
    return flat.as_strided({3, 1, 3, 1}, {3, 3, 1, 1}, begin);
  };
  return {{view(problem.param, 0), view(problem.grad, 0), 0},
          {view(problem.param, 16), view(problem.grad, 16), 0}};
}

class EveryOptimizer : public ::testing::TestWithParam<OptimizerKind> {
 protected:
  static std::unique_ptr<Optimizer> make(Problem const& problem) {
    return make_optimizer(GetParam(), problem.segments(), kernels_of(problem));
  }
};

// Requirement: a non-finite step changes nothing and is not counted, also when it is the first one.
TEST_P(EveryOptimizer, SkipsABadStepWithoutATrace) {
  Problem clean;
  Problem disturbed;
  auto const clean_optimizer = make(clean);
  auto const disturbed_optimizer = make(disturbed);
  for (int step = 0; step < 4; ++step) {
    if (step % 2 == 0) {
      disturbed.grad.fill_(std::numeric_limits<float>::quiet_NaN());
      disturbed_optimizer->step(disturbed.hyper, at::ones({}));
    }
    clean.set_gradient(step);
    disturbed.set_gradient(step);
    clean_optimizer->step(clean.hyper, at::zeros({}));
    disturbed_optimizer->step(disturbed.hyper, at::zeros({}));
  }
  EXPECT_TRUE(at::equal(clean.param, disturbed.param));
  EXPECT_EQ(clean_optimizer->steps().item<float>(), 4);
  EXPECT_EQ(disturbed_optimizer->steps().item<float>(), 4);
}

TEST_P(EveryOptimizer, AGoodStepIsTheSameWithAndWithoutTheFlag) {
  Problem flagged;
  Problem plain;
  auto const flagged_optimizer = make(flagged);
  auto const plain_optimizer = make(plain);
  for (int step = 0; step < 3; ++step) {
    flagged.set_gradient(step);
    plain.set_gradient(step);
    flagged_optimizer->step(flagged.hyper, at::zeros({}));
    plain_optimizer->step(plain.hyper, {});
  }
  EXPECT_TRUE(at::equal(flagged.param, plain.param));
}

TEST_P(EveryOptimizer, GoesOnFromSavedStateBitForBit) {
  Problem whole;
  auto const uninterrupted = make(whole);
  for (int step = 0; step < 3; ++step) {
    whole.set_gradient(step);
    uninterrupted->step(whole.hyper, {});
  }
  Problem resumed;
  resumed.param.copy_(whole.param);
  auto const second = make(resumed);
  auto const from = uninterrupted->state();
  auto const to = second->state();
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t role = 0; role < from.size(); ++role) {
    EXPECT_EQ(from[role].role, to[role].role);
    for (std::size_t s = 0; s < from[role].of_segment.size(); ++s) {
      if (from[role].of_segment[s].defined())
        to[role].of_segment[s].copy_(from[role].of_segment[s]);
    }
  }
  second->steps().copy_(uninterrupted->steps());
  for (int step = 3; step < 6; ++step) {
    whole.set_gradient(step);
    resumed.set_gradient(step);
    uninterrupted->step(whole.hyper, {});
    second->step(resumed.hyper, {});
  }
  EXPECT_TRUE(at::equal(whole.param, resumed.param));
}

/// Steps with the first segment cut at `cuts` and as a whole. \return  the largest difference
double difference_by_cutting(OptimizerKind kind, std::vector<std::int64_t> const& cuts) {
  Problem whole(96);
  Problem cut(96);
  auto const segments = cut.segments();
  std::vector<Segment> pieces = {segments[1]};
  std::int64_t begin = 0;
  for (auto const end : cuts) {
    pieces.push_back({cut.param.slice(0, begin, end), cut.grad.slice(0, begin, end), 0});
    begin = end;
  }
  pieces.push_back({cut.param.slice(0, begin, 96), cut.grad.slice(0, begin, 96), 0});
  auto const whole_optimizer = make_optimizer(kind, whole.segments(), {});
  auto const cut_optimizer = make_optimizer(kind, pieces, {});
  for (int step = 0; step < steps_tested; ++step) {
    whole.set_gradient(step);
    cut.set_gradient(step);
    whole_optimizer->step(whole.hyper, {});
    cut_optimizer->step(cut.hyper, {});
  }
  return (whole.param - cut.param).abs().max().item<double>();
}

// Shards of ranks that end on whole vectors give the bits of one rank; others its numbers.
TEST_P(EveryOptimizer, ShardsFollowTheWhole) {
  EXPECT_EQ(difference_by_cutting(GetParam(), {16, 64, 80}), 0.0);
  EXPECT_LE(difference_by_cutting(GetParam(), {5, 50, 51}), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimizer,
                         ::testing::Values(OptimizerKind::sgd, OptimizerKind::adamw,
                                           OptimizerKind::musgd),
                         [](auto const& info) { return std::string(to_string(info.param)); });

void expect_error(std::vector<Segment> const& segments, std::string const& words) {
  try {
    make_sgd(segments);
    FAIL() << "taken, although " << words;
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(Segments, AreChecked) {
  expect_error({}, "0 segments");
  expect_error({{at::zeros({2, 3}), at::zeros({6}), 0}}, "shape [2, 3]");
  expect_error({{at::zeros({6}), at::zeros({6}).to(at::kDouble), 0}}, "type Double");
  expect_error({{at::zeros({6}), at::zeros({5}), 0}}, "5 gradients");
  Problem problem;
  EXPECT_THROW(make_sgd(problem.segments())->step(std::span(problem.hyper).first(1), {}),
               base::Error);
}

}  // namespace
}  // namespace yolohpc::optim
