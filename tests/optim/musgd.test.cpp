// MuSGD against its formula written out kernel by kernel.
#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/optim/optimizer.hpp"

#include "support/golden.hpp"

namespace yolohpc::optim {
namespace {

at::Tensor bf16(at::Tensor const& t) {
  return t.to(at::kBFloat16).to(at::kDouble);
}

/// The orthogonalisation of one (rows, columns) matrix in double, rounded to bfloat16 where
/// spec/optim.md says.
at::Tensor orthogonalised(at::Tensor const& update) {
  auto x = bf16(update.size(0) > update.size(1) ? update.t() : update);
  x = bf16(x / bf16(bf16(x.norm()) + 1e-7));
  for (int i = 0; i < 5; ++i) {
    auto const p = bf16(x.mm(x.t()));
    auto const q = bf16(-4.7750 * p + 2.0315 * p.mm(p));
    x = bf16(3.4445 * x + q.mm(x));
  }
  return update.size(0) > update.size(1) ? x.t() : x;
}

struct Kernel {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t begin;
};

/// Two kernels of one shape (6, 2, 3, 3), a tall one (40, 1, 3, 3), a 1x1 one (4, 9, 1, 1), all
/// with channels-last strides in one segment with gaps; and a segment of 5 biases.
struct Problem {
  std::vector<Kernel> kernels = {{"a", {6, 2, 3, 3}, 0},
                                 {"b", {6, 2, 3, 3}, 112},
                                 {"tall", {40, 1, 3, 3}, 224},
                                 {"point", {4, 9, 1, 1}, 592}};
  at::Tensor param = at::zeros({645});
  at::Tensor grad = at::zeros({645});
  std::vector<GroupHyper> hyper = {{0.01, 0.05, 0.9}, {0.02, 0.0, 0.8}};

  Problem() {
    for (auto const& kernel : kernels) view(param, kernel).copy_(values("p", kernel));
    biases(param).copy_(testing::formula_state("p.bias", {5}, 3));
  }
  static at::Tensor values(std::string const& what, Kernel const& kernel) {
    return testing::formula_state(what + kernel.name, kernel.shape, 3);
  }
  static at::Tensor view(at::Tensor const& flat, Kernel const& kernel) {
    auto const& s = kernel.shape;
    return flat.as_strided(s, {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]}, kernel.begin);
  }
  static at::Tensor biases(at::Tensor const& flat) { return flat.narrow(0, 640, 5); }
  void set_gradient(int step) {
    auto const name = base::join("g", step);
    for (auto const& kernel : kernels) {
      view(grad, kernel).copy_(values(name, kernel));
    }
    biases(grad).copy_(testing::formula_state(name + ".bias", {5}, 3));
  }
  std::vector<Segment> segments() const {
    return {{param.narrow(0, 0, 640), grad.narrow(0, 0, 640), 0}, {biases(param), biases(grad), 1}};
  }
  std::vector<KernelSlot> slots() const {
    std::vector<KernelSlot> result;
    for (auto const& kernel : kernels)
      result.push_back({view(param, kernel), view(grad, kernel), 0});
    return result;
  }
};

// Guards the order of momentum, orthogonalisation on the flattened shape (whatever the strides),
// the factor 0.2, and SGD with decay on the moved parameter.
TEST(MuSgd, FollowsTheFormulaKernelByKernel) {
  Problem problem;
  auto const optimizer = make_musgd(problem.segments(), problem.slots());
  std::vector<at::Tensor> p, muon, sgd;
  for (auto const& kernel : problem.kernels) {
    p.push_back(Problem::view(problem.param, kernel).to(at::kDouble).contiguous());
    muon.push_back(at::zeros_like(p.back()));
    sgd.push_back(at::zeros_like(p.back()));
  }
  auto const& [lr, decay, mu] = problem.hyper[0];
  for (int step = 0; step < 4; ++step) {
    problem.set_gradient(step);
    for (std::size_t k = 0; k < p.size(); ++k) {
      auto const g = Problem::view(problem.grad, problem.kernels[k]).to(at::kDouble).contiguous();
      muon[k] = mu * muon[k] + (1 - mu) * g;
      auto const u = mu * muon[k] + (1 - mu) * g;
      p[k] = p[k] - 0.2 * lr * orthogonalised(u.flatten(1)).reshape(u.sizes());
      auto const h = g + decay * p[k];
      sgd[k] = mu * sgd[k] + h;
      p[k] = p[k] - lr * (h + mu * sgd[k]);
    }
    optimizer->step(problem.hyper, {});
  }
  for (std::size_t k = 0; k < p.size(); ++k) {
    // A bfloat16 rounding that falls the other way moves an element by 2^-9 of 0.2 lr |X|.
    testing::expect_close(Problem::view(problem.param, problem.kernels[k]).contiguous(), p[k], 1e-6,
                          2e-5, problem.kernels[k].name);
  }
  auto const gap = problem.param.narrow(0, 108, 4);
  EXPECT_TRUE(at::equal(gap, at::zeros({4}))) << "padding between kernels moved";
}

// spec/golden.md section 7: no trajectory tells decay on the moved parameter from decay on the old
// one. With a large decay and momentum 0 the two differ by lr * wd * 0.2 * lr * X.
TEST(MuSgd, DecaysTheMovedParameter) {
  Problem problem;
  problem.hyper[0] = {0.5, 1.0, 0.0};
  auto const old = Problem::view(problem.param, problem.kernels[0]).to(at::kDouble).contiguous();
  problem.set_gradient(0);
  auto const g = Problem::view(problem.grad, problem.kernels[0]).to(at::kDouble).contiguous();
  auto const x = orthogonalised(g.flatten(1)).reshape(g.sizes());
  make_musgd(problem.segments(), problem.slots())->step(problem.hyper, {});
  auto const moved = old - 0.2 * 0.5 * x;
  auto const expected = moved - 0.5 * (g + moved);
  // The other order would be off by 0.05 |X|; a rounding of X that falls the other way by 0.0004.
  testing::expect_close(Problem::view(problem.param, problem.kernels[0]).contiguous(), expected, 0,
                        2e-3, "moved, then decayed");
}

TEST(MuSgd, OtherSegmentsGetPlainSgd) {
  Problem problem;
  Problem plain;
  auto const musgd = make_musgd(problem.segments(), problem.slots());
  auto const sgd = make_sgd(plain.segments());
  for (int step = 0; step < 3; ++step) {
    problem.set_gradient(step);
    plain.set_gradient(step);
    musgd->step(problem.hyper, {});
    sgd->step(plain.hyper, {});
  }
  EXPECT_TRUE(at::equal(Problem::biases(problem.param), Problem::biases(plain.param)));
  EXPECT_FALSE(musgd->state().at(1).of_segment.at(1).defined());
}

// A gradient of zeros has no direction: the kernel only decays.
TEST(MuSgd, AZeroGradientGivesNoUpdate) {
  Problem problem;
  auto const before = problem.param.clone();
  make_musgd(problem.segments(), problem.slots())->step(problem.hyper, {});
  auto const kernel = Problem::view(problem.param, problem.kernels[2]).contiguous();
  auto const old = Problem::view(before, problem.kernels[2]).contiguous();
  testing::expect_close(kernel, old * (1 - 0.01 * 0.05 * 1.9), 1e-6, 0, "decayed kernel");
}

TEST(MuSgd, RefusesAKernelThatIsCut) {
  Problem problem;
  auto segments = problem.segments();
  auto const whole = segments[0];
  segments[0] = {whole.param.narrow(0, 0, 300), whole.grad.narrow(0, 0, 300), 0};
  segments.push_back({whole.param.narrow(0, 300, 340), whole.grad.narrow(0, 300, 340), 0});
  try {
    make_musgd(segments, problem.slots());
    FAIL() << "a cut kernel was taken";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("kernel 2"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace yolohpc::optim
