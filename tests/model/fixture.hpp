// What the golden tests of networks share: formula weights, tolerances written as text in the
// fixtures.
#pragma once

#include <cmath>
#include <regex>
#include <string>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "yolohpc/model/network.hpp"

#include "support/golden.hpp"

namespace yolohpc::testing {

struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

/// Reads "rel 1e-5", "abs 2e-5 + rel 1e-4", "|d| <= 1e-4 + 1e-4*|ref| ..." and "|d| <= 1e-2 px".
inline Tolerance parse_tolerance(std::string const& text) {
  static std::regex const term(R"((rel |abs )?([0-9.]+(?:e[-+]?[0-9]+)?)(\*\|ref\|)?)");
  Tolerance tolerance;
  for (std::sregex_iterator match(text.begin(), text.end(), term), end; match != end; ++match) {
    bool const relative = (*match)[1] == "rel " || (*match)[3].matched;
    (relative ? tolerance.relative : tolerance.absolute) = std::stod((*match)[2]);
  }
  EXPECT_GT(tolerance.relative + tolerance.absolute, 0) << "no number in '" << text << "'";
  return tolerance;
}

inline void expect_near(double got, double expected, Tolerance const& tolerance,
                        std::string const& what) {
  double const bound = tolerance.absolute + tolerance.relative * std::abs(expected);
  EXPECT_TRUE(std::abs(got - expected) <= bound)
      << what << ": " << got << ", expected " << expected << " within " << bound;
}

/// Fills every entry by the formula of the fixtures.
inline void load_formula(model::Network& network, std::uint32_t seed) {
  base::NamedTensors state;
  for (auto const& entry : network.entries()) {
    state.push_back({entry.name, formula_state(entry.name, entry.tensor.sizes(), seed)});
  }
  network.load_state(state, model::LoadMode::strict);
}

}  // namespace yolohpc::testing
