#include "yolohpc/parallel/flat_buffers.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::parallel {
namespace {

using Indices = std::vector<std::size_t>;

// The bucket that completes last is cut this much smaller than the others.
constexpr std::int64_t last_bucket_divisor = 4;

std::int64_t aligned(std::int64_t numel) {
  auto const step = FlatBuffers::alignment_elements;
  return (numel + step - 1) / step * step;
}

void check_parameter(FlatParameter const& parameter, at::Tensor const& first) {
  auto const& tensor = parameter.tensor;
  YOLOHPC_CHECK(tensor.defined() && tensor.requires_grad() && tensor.is_leaf(), "parameter ",
                parameter.name,
                " does not train (it needs no gradient or is the result of an "
                "operation). Leave it out of the flat buffers.");
  YOLOHPC_CHECK(tensor.scalar_type() == first.scalar_type() && tensor.device() == first.device(),
                "parameter ", parameter.name, " is ", tensor.toString(), " on ", tensor.device(),
                ", the first one is ", first.toString(), " on ", first.device(),
                ". Flat buffers hold one type on one device: convert the model first.");
  YOLOHPC_CHECK(parameter.group >= 0, "parameter ", parameter.name, " has the group ",
                parameter.group, " (groups count from 0).");
}

void check_parameters(std::vector<FlatParameter> const& parameters) {
  YOLOHPC_CHECK(!parameters.empty(), "there is no parameter to train: all are frozen.");
  std::set<std::string> names;
  for (auto const& parameter : parameters) {
    check_parameter(parameter, parameters.front().tensor);
    YOLOHPC_CHECK(names.insert(parameter.name).second, "two parameters are called ", parameter.name,
                  ". Names must be unique.");
  }
}

std::int64_t bucket_limit_bytes(std::vector<FlatParameter> const& parameters,
                                FlatSettings const& settings) {
  std::int64_t total_bytes = 0;
  for (auto const& parameter : parameters) {
    total_bytes += static_cast<std::int64_t>(parameter.tensor.nbytes());
  }
  auto const share_bytes = total_bytes / std::max(settings.least_buckets, 1);
  return std::min(settings.bucket_bytes, std::max(share_bytes, settings.least_bucket_bytes));
}

// Buckets of indices in the order of their reduction; inside each by group, then by reverse order
// of use.
std::vector<Indices> cut_buckets(std::vector<FlatParameter> const& parameters,
                                 FlatSettings const& settings) {
  Indices order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return parameters[a].order_of_use < parameters[b].order_of_use;
  });
  auto const limit_bytes = bucket_limit_bytes(parameters, settings);
  std::vector<Indices> buckets;
  std::int64_t room_bytes = 0;
  for (auto const index : order) {
    auto const size_bytes = static_cast<std::int64_t>(parameters[index].tensor.nbytes());
    if (buckets.empty() || size_bytes > room_bytes) {
      room_bytes = buckets.empty() ? limit_bytes / last_bucket_divisor : limit_bytes;
      buckets.emplace_back();
    }
    buckets.back().push_back(index);
    room_bytes -= size_bytes;
  }
  std::reverse(buckets.begin(), buckets.end());
  for (auto& bucket : buckets) {
    std::reverse(bucket.begin(), bucket.end());
    std::stable_sort(bucket.begin(), bucket.end(), [&](std::size_t a, std::size_t b) {
      return parameters[a].group < parameters[b].group;
    });
  }
  return buckets;
}

std::vector<std::int64_t> row_major_strides(at::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

std::vector<std::int64_t> strides_of(at::IntArrayRef sizes, WeightLayout layout) {
  if (sizes.size() != 4 || layout == WeightLayout::row_major) return row_major_strides(sizes);
  auto const in = sizes[1];
  auto const height = sizes[2];
  auto const width = sizes[3];
  return {in * height * width, 1, in * width, in};
}

FlatSlot make_slot(FlatParameter const& parameter, int bucket, std::int64_t begin,
                   WeightLayout layout) {
  auto const sizes = parameter.tensor.sizes();
  return {parameter.name, parameter.group,          bucket, begin, parameter.tensor.numel(),
          sizes.vec(),    strides_of(sizes, layout)};
}

void extend_group_ranges(std::vector<FlatRange>& ranges, FlatSlot const& slot) {
  if (ranges.empty() || ranges.back().bucket != slot.bucket || ranges.back().group != slot.group) {
    ranges.push_back({slot.bucket, slot.group, slot.begin, 0});
  }
  ranges.back().numel = slot.begin + aligned(slot.numel) - ranges.back().begin;
}

}  // namespace

FlatBuffers::FlatBuffers(std::vector<FlatParameter> const& parameters,
                         FlatSettings const& settings) {
  check_parameters(parameters);
  at::NoGradGuard const no_grad;
  passed_order_.resize(parameters.size());
  std::int64_t end = 0;
  for (auto const& bucket : cut_buckets(parameters, settings)) {
    auto const number = static_cast<int>(buckets_.size());
    buckets_.push_back({number, -1, end, 0});
    for (auto const index : bucket) {
      passed_order_[index] = slots_.size();
      slots_.push_back(make_slot(parameters[index], number, end, settings.layout));
      tensors_.push_back(parameters[index].tensor);
      extend_group_ranges(group_ranges_, slots_.back());
      end += aligned(slots_.back().numel);
    }
    buckets_.back().numel = end - buckets_.back().begin;
  }
  parameters_ = at::zeros({end}, parameters.front().tensor.options().requires_grad(false));
  gradients_ = at::zeros_like(parameters_);
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    auto const place = view(parameters_, index);
    place.copy_(tensors_[index]);
    tensors_[index].set_data(place);
    tensors_[index].mutable_grad() = view(gradients_, index);
  }
}

void FlatBuffers::zero_grad() {
  gradients_.zero_();
}

void FlatBuffers::check_gradients_in_place() const {
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    auto const& slot = slots_[index];
    auto const& gradient = tensors_[index].grad();
    bool const is_in_place = gradient.defined() &&
                             gradient.storage().is_alias_of(gradients_.storage()) &&
                             gradient.storage_offset() == slot.begin &&
                             gradient.strides() == at::IntArrayRef(slot.strides);
    YOLOHPC_CHECK(is_in_place, "the gradient of ", slot.name, " is ",
                  gradient.defined() ? "a tensor of its own" : "undefined",
                  " and no longer part of the flat buffer. Do not clear or replace gradients, and "
                  "run the backward pass without a graph of the gradients.");
  }
}

at::Tensor FlatBuffers::make_flat() const {
  return at::zeros_like(parameters_);
}

at::Tensor FlatBuffers::slice(at::Tensor const& flat, FlatRange const& range) const {
  return flat.narrow(0, range.begin, range.numel);
}

at::Tensor FlatBuffers::view(at::Tensor const& flat, std::size_t index) const {
  auto const& slot = slots_.at(index);
  return flat.as_strided(slot.sizes, slot.strides, flat.storage_offset() + slot.begin);
}

base::NamedTensors FlatBuffers::export_flat(at::Tensor const& flat,
                                            std::string const& suffix) const {
  base::NamedTensors result;
  for (auto const index : passed_order_) {
    result.push_back({slots_[index].name + suffix, view(flat, index)});
  }
  return result;
}

void FlatBuffers::import_flat(base::NamedTensors const& state, at::Tensor const& flat,
                              std::string const& suffix) const {
  at::NoGradGuard const no_grad;
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    auto const& slot = slots_[index];
    auto const source = base::find_tensor(state, slot.name + suffix);
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, source.defined(), "the state has no tensor ",
                     slot.name, suffix, ". It was saved by another model or optimizer.");
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, source.sizes() == at::IntArrayRef(slot.sizes),
                     "tensor ", slot.name, suffix, " has shape ", source.sizes(),
                     ", the model needs ", at::IntArrayRef(slot.sizes),
                     ". It was saved by another model.");
    view(flat, index).copy_(source);
  }
}

}  // namespace yolohpc::parallel
