#include <algorithm>
#include <cmath>
#include <numeric>

#include "block.hpp"
#include "csp_blocks.hpp"
#include "detect.hpp"
#include "plain_blocks.hpp"
#include "psa_blocks.hpp"

namespace yolohpc::model {

std::int64_t BlockRequest::count(std::string const& name, std::int64_t otherwise) const {
  double const value = layer.argument(name, static_cast<double>(otherwise));
  if (value < 1 || value != std::floor(value)) {
    fail(name, " is ", value, ". Give a whole number above 0.");
  }
  return static_cast<std::int64_t>(value);
}

bool BlockRequest::flag(std::string const& name, bool otherwise) const {
  double const value = layer.argument(name, otherwise ? 1 : 0);
  if (value != 0 && value != 1) fail(name, " is ", value, ". Give true or false.");
  return value == 1;
}

double BlockRequest::fraction(std::string const& name, double otherwise) const {
  double const value = layer.argument(name, otherwise);
  if (!(value > 0)) fail(name, " is ", value, ". Give a number above 0.");
  return value;
}

Feature BlockRequest::input() const {
  if (inputs.size() != 1) fail("reads ", inputs.size(), " layers, takes one. Name one in 'from'.");
  return inputs.front();
}

std::int64_t BlockRequest::out() const {
  if (layer.out_channels < 1) fail("has no 'out'. Give the number of output channels.");
  return layer.out_channels;
}

void check_arguments(BlockRequest const& request, std::vector<std::string> const& known,
                     bool takes_repeats) {
  for (auto const& [name, value] : request.layer.arguments) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list = "from, out";
    if (takes_repeats) list += ", repeats";
    for (auto const& each : known) list += ", " + each;
    request.fail("no argument '", name, "'. Known: ", list, ".");
  }
  if (!takes_repeats && request.layer.repeats != 1) {
    request.fail("repeats is ", request.layer.repeats,
                 ", this block stands once. Write the line several times.");
  }
}

std::map<std::string, BlockType> const& block_types() {
  static std::map<std::string, BlockType> const types{
      {"Conv", {{"kernel", "stride", "groups"}, false, build_conv}},
      {"DWConv", {{"kernel", "stride"}, false, build_depthwise_conv}},
      {"Bottleneck", {{"shortcut", "expansion"}, false, build_bottleneck}},
      {"C3k", {{}, true, build_c3k}},
      {"C3k2", {{"c3k", "expansion"}, true, build_c3k2}},
      {"SPPF", {{"kernel"}, false, build_sppf}},
      {"C2PSA", {{}, true, build_c2psa}},
      {"Upsample", {{"scale"}, false, build_upsample}},
      {"Concat", {{}, false, build_concat}},
  };
  return types;
}

std::map<std::string, HeadType> const& head_types() {
  static std::map<std::string, HeadType> const types{{"Detect", {{}, build_detect}}};
  return types;
}

}  // namespace yolohpc::model
