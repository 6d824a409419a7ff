// Names, shapes, types and order of the state dict at every scale.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/fixture.hpp"

namespace yolohpc::model {
namespace {

class StateDict : public ::testing::TestWithParam<std::string> {};

// Catches any renamed, reordered, missing or reshaped tensor, and training of the frozen DFL
// kernel.
TEST_P(StateDict, EqualsTheFixture) {
  auto const fixture = testing::golden_json("state_dict_" + GetParam() + ".json");
  Network const network(load_graph("yolo11" + GetParam()), {fixture["nc"].get<std::int64_t>()});
  auto const& entries = network.entries();
  ASSERT_EQ(entries.size(), fixture["count"].get<std::size_t>());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto const& expected = fixture["entries"][i];
    auto const& got = entries[i];
    ASSERT_EQ(got.name, expected["name"]);
    EXPECT_EQ(got.tensor.sizes().vec(), expected["shape"].get<std::vector<std::int64_t>>())
        << got.name;
    EXPECT_EQ(got.tensor.scalar_type() == at::kLong ? "int64" : "float32", expected["dtype"]);
    EXPECT_EQ(is_parameter(got.kind) ? "parameter" : "buffer", expected["kind"]) << got.name;
    EXPECT_EQ(got.tensor.requires_grad(), expected["trainable"].get<bool>()) << got.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Scales, StateDict, ::testing::Values("n", "s", "m", "l", "x"));

}  // namespace
}  // namespace yolohpc::model
