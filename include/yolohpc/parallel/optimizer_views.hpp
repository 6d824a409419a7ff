// What an optimizer sees of the flat buffers, and its state in a form that knows no layout.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "yolohpc/base/named_tensors.hpp"
#include "yolohpc/optim/optimizer.hpp"
#include "yolohpc/parallel/flat_buffers.hpp"

namespace yolohpc::parallel {

/// One segment for each of group_ranges(), in that order. Shares memory with `flat`.
std::vector<optim::Segment> make_segments(FlatBuffers const& flat);

/// The kernels of groups whose kind is muon, in flat order.
/// \param groups  indexed by FlatSlot::group
std::vector<optim::KernelSlot> make_kernels(FlatBuffers const& flat,
                                            std::span<optim::ParameterGroup const> groups);

/// The state per parameter as views called "optimizer.<role>.<parameter>", and the step counter
/// "optimizer.steps", sorted by name: names, shapes and order are the same for every layout and
/// bucket size. Shares memory with the optimizer: clone what has to stay.
/// \param optimizer  made from make_segments(flat)
base::NamedTensors export_optimizer(FlatBuffers const& flat, optim::Optimizer const& optimizer);

/// \throws Error (bad data)  an entry is missing (another kind of optimizer saved it) or has
///         another shape
void import_optimizer(FlatBuffers const& flat, base::NamedTensors const& state,
                      optim::Optimizer const& optimizer);

}  // namespace yolohpc::parallel
