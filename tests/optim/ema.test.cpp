#include "yolohpc/optim/ema.hpp"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::optim {
namespace {

TEST(Ema, FollowsTheFormulaInDouble) {
  auto model = at::tensor({1.0f, -2.0f, 0.5f});
  Ema ema({0.9, 3.0}, {model});
  auto expected = model.to(at::kDouble);
  for (int k = 1; k <= 6; ++k) {
    model.add_(testing::formula_state(base::join("step", k, ".bias"), {3}, 0));
    double const d = 0.9 * (1 - std::exp(-k / 3.0));
    expected = expected + (model.to(at::kDouble) - expected) * (1 - d);
    ema.update();
    EXPECT_NEAR(ema.decay_at(k), d, 1e-15);
  }
  testing::expect_close(ema.averages()[0], expected, 1e-6, 1e-6, "average");
  EXPECT_EQ(ema.updates(), 6);
}

TEST(Ema, StartsAsACopyWithItsOwnMemory) {
  auto model = at::ones({4});
  Ema const ema({}, {model});
  model.zero_();
  EXPECT_TRUE(at::equal(ema.averages()[0], at::ones({4})));
  EXPECT_EQ(ema.decay_at(0), 0.0);
}

// Requirement: one bad step must not poison the average; elements that are finite go on.
TEST(Ema, NeverTakesNonFiniteValues) {
  auto model = at::ones({4});
  Ema ema({0.0, 1.0}, {model});  // decay 0: the average becomes the model
  model.copy_(
      at::tensor({std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                  -std::numeric_limits<float>::infinity(), 3.0f}));
  ema.update();
  EXPECT_TRUE(at::equal(ema.averages()[0], at::tensor({1.0f, 1.0f, 1.0f, 3.0f})));
  model.fill_(2.0f);
  ema.update();
  EXPECT_TRUE(at::equal(ema.averages()[0], at::full({4}, 2.0f)));
  EXPECT_EQ(ema.updates(), 2);
}

TEST(Ema, KeepsTheLayoutOfTheModel) {
  auto const model = at::zeros({2, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  Ema const ema({}, {model});
  EXPECT_EQ(ema.averages()[0].strides(), model.strides());
}

TEST(Ema, GoesOnFromSavedStateBitForBit) {
  auto model = testing::formula_state("m.bias", {100}, 0);
  Ema whole({}, {model});
  for (int k = 0; k < 3; ++k) {
    model.add_(0.25);
    whole.update();
  }
  Ema resumed({}, {model});
  resumed.averages()[0].copy_(whole.averages()[0]);
  resumed.set_updates(whole.updates());
  for (int k = 0; k < 3; ++k) {
    model.add_(0.25);
    whole.update();
    resumed.update();
  }
  EXPECT_TRUE(at::equal(whole.averages()[0], resumed.averages()[0]));
}

TEST(Ema, ChecksItsArguments) {
  EXPECT_THROW(Ema({1.0, 2000}, {}), base::Error);
  EXPECT_THROW(Ema({0.9, 0}, {}), base::Error);
  EXPECT_THROW(Ema({}, {at::ones({3}).to(at::kLong)}), base::Error);
  EXPECT_THROW(Ema({}, {}).set_updates(-1), base::Error);
}

}  // namespace
}  // namespace yolohpc::optim
