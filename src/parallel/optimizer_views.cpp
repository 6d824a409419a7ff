#include "yolohpc/parallel/optimizer_views.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::parallel {
namespace {

char const* const steps_name = "optimizer.steps";

std::string entry_name(std::string const& role, std::string const& parameter) {
  return "optimizer." + role + "." + parameter;
}

bool holds(FlatRange const& range, FlatSlot const& slot) {
  return range.begin <= slot.begin && slot.begin < range.begin + range.numel;
}

// Calls visit(slot, its part of the state) for all slots that have state of this role. Segments and
// slots are both in flat order.
template <typename Visit>
void for_each_part(FlatBuffers const& flat, optim::RoleState const& role, Visit const& visit) {
  auto const& ranges = flat.group_ranges();
  YOLOHPC_CHECK(role.of_segment.size() == ranges.size(), "optimizer role ", role.role, " has ",
                role.of_segment.size(), " segments, the flat buffers have ", ranges.size(),
                ". It was made from other buffers.");
  std::size_t segment = 0;
  for (auto const& slot : flat.slots()) {
    while (!holds(ranges[segment], slot)) ++segment;
    auto const& state = role.of_segment[segment];
    if (!state.defined()) continue;
    auto const begin = state.storage_offset() + slot.begin - ranges[segment].begin;
    visit(slot, state.as_strided(slot.sizes, slot.strides, begin));
  }
}

at::Tensor required(base::NamedTensors const& state, std::string const& name,
                    at::IntArrayRef sizes) {
  auto const found = base::find_tensor(state, name);
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, found.defined(), "the state has no tensor ", name,
                   ". It was saved with another optimizer or model.");
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, found.sizes() == sizes, "tensor ", name, " has shape ",
                   found.sizes(), ", the model needs ", sizes, ". It was saved by another model.");
  return found;
}

}  // namespace

std::vector<optim::Segment> make_segments(FlatBuffers const& flat) {
  std::vector<optim::Segment> segments;
  for (auto const& range : flat.group_ranges()) {
    segments.push_back(
        {flat.slice(flat.parameters(), range), flat.slice(flat.gradients(), range), range.group});
  }
  return segments;
}

std::vector<optim::KernelSlot> make_kernels(FlatBuffers const& flat,
                                            std::span<optim::ParameterGroup const> groups) {
  std::vector<optim::KernelSlot> kernels;
  for (std::size_t index = 0; index < flat.slots().size(); ++index) {
    auto const group = flat.slots()[index].group;
    if (groups[static_cast<std::size_t>(group)].kind != optim::GroupKind::muon) continue;
    kernels.push_back(
        {flat.view(flat.parameters(), index), flat.view(flat.gradients(), index), group});
  }
  return kernels;
}

base::NamedTensors export_optimizer(FlatBuffers const& flat, optim::Optimizer const& optimizer) {
  base::NamedTensors result{{steps_name, optimizer.steps()}};
  for (auto const& role : optimizer.state()) {
    for_each_part(flat, role, [&](FlatSlot const& slot, at::Tensor const& part) {
      result.push_back({entry_name(role.role, slot.name), part});
    });
  }
  std::sort(result.begin(), result.end(),
            [](auto const& a, auto const& b) { return a.name < b.name; });
  return result;
}

void import_optimizer(FlatBuffers const& flat, base::NamedTensors const& state,
                      optim::Optimizer const& optimizer) {
  at::NoGradGuard const no_grad;
  optimizer.steps().copy_(required(state, steps_name, optimizer.steps().sizes()));
  for (auto const& role : optimizer.state()) {
    for_each_part(flat, role, [&](FlatSlot const& slot, at::Tensor const& part) {
      part.copy_(required(state, entry_name(role.role, slot.name), slot.sizes));
    });
  }
}

}  // namespace yolohpc::parallel
