#include "builtin_graphs.hpp"

namespace yolohpc::model {
namespace {

// Source of the table: spec/model.md, sections 1 and 2.
constexpr char yolo11[] = R"(# YOLO11 detection
scales:
  n: {depth: 0.5, width: 0.25, max_channels: 1024}
  s: {depth: 0.5, width: 0.5, max_channels: 1024}
  m: {depth: 0.5, width: 1.0, max_channels: 512, force: {C3k2: {c3k: true}}}
  l: {depth: 1.0, width: 1.0, max_channels: 512, force: {C3k2: {c3k: true}}}
  x: {depth: 1.0, width: 1.5, max_channels: 512, force: {C3k2: {c3k: true}}}
layers:
  # backbone
  - {block: Conv, out: 64, kernel: 3, stride: 2}                           # 0: stride 2
  - {block: Conv, out: 128, kernel: 3, stride: 2}                          # 1: stride 4
  - {block: C3k2, out: 256, repeats: 2, c3k: false, expansion: 0.25}       # 2
  - {block: Conv, out: 256, kernel: 3, stride: 2}                          # 3: stride 8
  - {block: C3k2, out: 512, repeats: 2, c3k: false, expansion: 0.25}       # 4
  - {block: Conv, out: 512, kernel: 3, stride: 2}                          # 5: stride 16
  - {block: C3k2, out: 512, repeats: 2, c3k: true, expansion: 0.5}         # 6
  - {block: Conv, out: 1024, kernel: 3, stride: 2}                         # 7: stride 32
  - {block: C3k2, out: 1024, repeats: 2, c3k: true, expansion: 0.5}        # 8
  - {block: SPPF, out: 1024, kernel: 5}                                    # 9
  - {block: C2PSA, out: 1024, repeats: 2}                                  # 10
  # neck
  - {block: Upsample, scale: 2}                                            # 11: stride 16
  - {block: Concat, from: [-1, 6]}                                         # 12
  - {block: C3k2, out: 512, repeats: 2, c3k: false, expansion: 0.5}        # 13
  - {block: Upsample, scale: 2}                                            # 14: stride 8
  - {block: Concat, from: [-1, 4]}                                         # 15
  - {block: C3k2, out: 256, repeats: 2, c3k: false, expansion: 0.5}        # 16
  - {block: Conv, out: 256, kernel: 3, stride: 2}                          # 17: stride 16
  - {block: Concat, from: [-1, 13]}                                        # 18
  - {block: C3k2, out: 512, repeats: 2, c3k: false, expansion: 0.5}        # 19
  - {block: Conv, out: 512, kernel: 3, stride: 2}                          # 20: stride 32
  - {block: Concat, from: [-1, 10]}                                        # 21
  - {block: C3k2, out: 1024, repeats: 2, c3k: true, expansion: 0.5}        # 22
  - {block: Detect, from: [16, 19, 22]}                                    # 23
)";

}  // namespace

std::vector<BuiltinGraph> const& builtin_graphs() {
  static std::vector<BuiltinGraph> const graphs{{"yolo11", {"n", "s", "m", "l", "x"}, yolo11}};
  return graphs;
}

}  // namespace yolohpc::model
