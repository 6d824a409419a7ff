// Graph files: scaling rules, and messages that say where and what is wrong.

#include "yolohpc/model/graph_spec.hpp"

#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/model/network.hpp"

#include "support/golden.hpp"

namespace yolohpc::model {
namespace {

// A detector with two levels, strides 8 and 16.
constexpr char small_graph[] = R"(scales:
  a: {depth: 0.5, width: 0.25, max_channels: 128}
  b: {depth: 1.0, width: 0.5, force: {C3k2: {c3k: true}}}
layers:
  - {block: Conv, out: 64, kernel: 3, stride: 4}
  - {block: Conv, out: 200, kernel: 3, stride: 2}
  - {block: C3k2, out: 256, repeats: 5, c3k: false}
  - {block: Conv, out: 256, kernel: 3, stride: 2}
  - {block: Upsample}
  - {block: Concat, from: [-1, 2]}
  - {block: Detect, from: [5, 3]}
)";

/// The message that building a network from `text` at scale "a" ends with.
std::string message_of(std::string const& text, std::string const& scale = "a") {
  try {
    Network const network(parse_graph(text, scale, "graph.yaml"), {2});
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage);
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string const& from, std::string const& to) {
  std::string text = small_graph;
  auto const at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(GraphSpec, ScalesWidthsAndRepeats) {
  auto const a = parse_graph(small_graph, "a", "graph.yaml");
  EXPECT_EQ(a.layers[0].out_channels, 16);
  EXPECT_EQ(a.layers[1].out_channels, 32);  // min(200, 128) / 4
  EXPECT_EQ(a.layers[2].repeats, 2);        // round(2.5) to even
  EXPECT_EQ(a.layers[2].argument("c3k", -1), 0);
  auto const b = parse_graph(small_graph, "b", "graph.yaml");
  EXPECT_EQ(b.layers[1].out_channels, 104);  // 100 up to a multiple of 8
  EXPECT_EQ(b.layers[2].repeats, 5);
  EXPECT_EQ(b.layers[2].argument("c3k", -1), 1);
}

TEST(GraphSpec, ResolvesWhereLayersReadFrom) {
  auto const spec = parse_graph(small_graph, "a", "graph.yaml");
  EXPECT_EQ(spec.layers[0].from, std::vector<int>{LayerSpec::image});
  EXPECT_EQ(spec.layers[4].from, std::vector<int>{3});
  EXPECT_EQ(spec.layers[5].from, (std::vector<int>{4, 2}));
}

// Another neck and head is a file, not a patch.
TEST(GraphSpec, OfAFileMakesANetwork) {
  testing::TemporaryFolder const folder;
  auto const path = (folder.path() / "small.yaml").string();
  std::ofstream(path) << small_graph;
  Network network(load_graph(path + ":b"), {2});
  EXPECT_EQ(network.strides_px(), (std::vector<std::int64_t>{8, 16}));
  EXPECT_EQ(network.max_stride_px(), 16);
  auto const output = network.forward(at::rand({2, 3, 32, 48}));
  EXPECT_EQ(output.boxes.sizes(), at::IntArrayRef({2, 64, 4 * 6 + 2 * 3}));
  EXPECT_EQ(output.scores.sizes(), at::IntArrayRef({2, 2, 4 * 6 + 2 * 3}));
  EXPECT_EQ(output.levels[1].stride_px, 16);
}

TEST(GraphSpec, KnowsItsOwnNames) {
  EXPECT_EQ(load_graph("yolo11x").layers[7].out_channels, 768);
  EXPECT_EQ(builtin_graph_names().size(), 5u);
  try {
    load_graph("yolo11q");
    FAIL() << "no error";
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("'yolo11q'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("yolo11n"), std::string::npos);
  }
}

struct Mistake {
  std::string from;
  std::string to;
  std::string message;  ///< has to appear
};

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNamedWithTheirLine) {
  auto const& [from, to, expected] = GetParam();
  auto const message = message_of(replaced(from, to));
  EXPECT_NE(message.find(expected), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Graph, Mistakes,
    ::testing::Values(
        Mistake{"block: Upsample", "block: Upscale", "graph.yaml line 9 (Upscale): no such block"},
        Mistake{"kernel: 3, stride: 4", "kernel: 4, stride: 4", "line 5 (Conv): kernel is 4"},
        Mistake{"kernel: 3, stride: 4", "kernel: 2.5, stride: 4", "kernel is 2.5"},
        Mistake{"stride: 4", "strid: 4", "no argument 'strid'. Known: from, out, kernel, stride"},
        Mistake{"stride: 4", "stride: four", "line 5: stride is 'four'"},
        Mistake{"stride: 4", "stride: [4]", "line 5: stride is not a single value"},
        Mistake{"out: 64", "out: -64", "line 5: out is -64"},
        Mistake{"out: 64, ", "", "line 5 (Conv): has no 'out'"},
        Mistake{"from: [-1, 2]", "from: [-1, 7]", "line 10: layer 5 reads from 7"},
        Mistake{"from: [-1, 2]", "from: [-1, 3]", "strides of 8 and 16 px"},
        Mistake{"from: [5, 3]", "from: [3, 5]", "strides of 16 and 8 px in this order"},
        Mistake{"block: Upsample", "block: Upsample, repeats: 4", "repeats is 2"},
        Mistake{"c3k: false", "c3k: 2", "line 7 (C3k2): c3k is 2"},
        Mistake{"block: Detect", "block: Conv", "line 11 (Conv): the last layer has to be a head"},
        Mistake{"width: 0.25", "wide: 0.25", "line 2: a scale has no 'wide'"},
        Mistake{"layers:", "rows:", "has no list 'layers'"},
        Mistake{"{block: Upsample}", "{block: Upsample", "is not YAML there"},
        Mistake{"scales:", "sizes:", "line 1: unknown key 'sizes'"}));

TEST(GraphSpec, WantsOneOfItsScales) {
  EXPECT_NE(message_of(small_graph, "z").find("no scale 'z'. Choose one as FILE:SCALE from: a, b"),
            std::string::npos);
  EXPECT_NE(message_of(small_graph, "").find("has several scales"), std::string::npos);
}

}  // namespace
}  // namespace yolohpc::model
