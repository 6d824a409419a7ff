#include "yolohpc/optim/param_groups.hpp"

#include <map>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::optim {
namespace {

std::vector<ParameterTraits> traits_of_scale_n() {
  std::vector<ParameterTraits> result;
  auto const fixture = testing::golden_json("state_dict_n.json");
  for (auto const& entry : fixture.at("entries")) {
    if (entry.at("kind") != "parameter") continue;
    auto const name = entry.at("name").get<std::string>();
    result.push_back({name, static_cast<std::int64_t>(entry.at("shape").size()),
                      name.find(".bn.") != std::string::npos});
  }
  return result;
}

struct FixtureOf {
  char const* file;
  OptimizerKind kind;
};

class GroupFixture : public ::testing::TestWithParam<FixtureOf> {};

// Guards the order of groups, who decays, who gets three times the rate, and how many tensors each
// has.
TEST_P(GroupFixture, AgreesWithTheReferenceTrainer) {
  auto const fixture = testing::golden_json(GetParam().file);
  double const lr = fixture.at("hyper").at("lr");
  auto const [groups, group_of] = group_parameters(traits_of_scale_n(), GetParam().kind);
  std::map<std::string, GroupKind> const kinds = {{"weight", GroupKind::weight},
                                                  {"bn", GroupKind::norm},
                                                  {"bias", GroupKind::bias},
                                                  {"muon", GroupKind::muon}};
  std::vector<int> counts(groups.size());
  for (int const group : group_of) ++counts.at(static_cast<std::size_t>(group));

  auto const& expected = fixture.at("groups");
  ASSERT_EQ(groups.size(), expected.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(groups[i].kind, kinds.at(expected[i].at("name")));
    EXPECT_EQ(counts[i], expected[i].at("tensors").get<int>());
    EXPECT_NEAR(groups[i].lr_factor * lr, expected[i].at("lr").get<double>(), 1e-12);
    // The fixture also states a decay for the empty weight groups.
    EXPECT_EQ(groups[i].decays, expected[i].at("weight_decay").get<double>() > 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, GroupFixture,
                         ::testing::Values(FixtureOf{"train_sgd.json", OptimizerKind::sgd},
                                           FixtureOf{"train_adamw.json", OptimizerKind::adamw},
                                           FixtureOf{"train_musgd.json", OptimizerKind::musgd}),
                         [](auto const& info) { return std::string(to_string(info.param.kind)); });

ParameterGroup group_of_one(std::string const& name, std::int64_t dims) {
  auto const [groups, group_of] = group_parameters({{name, dims, false}}, OptimizerKind::musgd);
  return groups.at(static_cast<std::size_t>(group_of.at(0)));
}

// A block of the backbone may have a convolution called cv3; only the head's class branch has
// levels below it.
TEST(ClassBranch, IsTheHeadsWhateverItsLayerNumber) {
  EXPECT_EQ(group_of_one("model.23.cv3.0.2.weight", 4).lr_factor, 3.0);
  EXPECT_EQ(group_of_one("model.17.cv3.2.0.0.conv.weight", 4).lr_factor, 3.0);
  EXPECT_EQ(group_of_one("model.2.cv3.conv.weight", 4).lr_factor, 1.0);
  EXPECT_EQ(group_of_one("model.8.m.0.cv3.conv.weight", 4).lr_factor, 1.0);
  EXPECT_EQ(group_of_one("model.23.cv2.0.2.weight", 4).lr_factor, 1.0);
}

TEST(OptimizerKind, NamesGoThereAndBack) {
  for (auto const kind : {OptimizerKind::sgd, OptimizerKind::adamw, OptimizerKind::musgd}) {
    EXPECT_EQ(parse_optimizer_kind(to_string(kind)), kind);
  }
  try {
    parse_optimizer_kind("lion");
    FAIL() << "lion was taken";
  } catch (base::Error const& error) {
    EXPECT_NE(std::string(error.what()).find("lion"), std::string::npos);
    EXPECT_EQ(error.code(), base::ExitCode::usage);
  }
}

}  // namespace
}  // namespace yolohpc::optim
