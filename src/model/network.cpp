#include "yolohpc/model/network.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "yolohpc/base/error.hpp"

#include "activation_checkpoint.hpp"
#include "block.hpp"
#include "initialise.hpp"
#include "load_state.hpp"

namespace yolohpc::model {
namespace {

constexpr std::int64_t image_channels = 3;

/// A part of the entries that belongs to one layer.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Layer {
  std::unique_ptr<Block> block;
  std::vector<int> from;
  Range range;
  std::vector<int> last_used;  ///< maps that nobody reads after this layer
};

}  // namespace

struct Network::Impl {
  GraphSpec spec;
  std::int64_t classes = 0;
  std::vector<StateEntry> entries;
  std::vector<Layer> layers;
  std::unique_ptr<Head> head;
  std::vector<int> head_from;
  Range head_range;
  std::string class_branch;  ///< full prefix of the names
  std::vector<std::int64_t> strides_px;
  std::int64_t max_stride_px = 1;
  Pass pass{.training = true, .records_statistics = true, .batch_norm = {}, .flops = nullptr};
  bool checkpoints = false;

  void build();
  BlockRequest request(std::size_t index, std::vector<Feature> const& features);
  void build_head(BlockRequest const& request);
  void find_last_uses();

  HeadOutput forward(at::Tensor const& images, Pass const& pass, LayerObserver const& observer);
  at::Tensor run_layer(Layer const& layer, std::vector<at::Tensor> const& inputs,
                       Pass const& pass) const;
  HeadOutput run_head(std::vector<at::Tensor> const& inputs, Pass const& pass) const;
  bool uses_checkpoint(Pass const& pass) const {
    return checkpoints && pass.training && at::GradMode::is_enabled();
  }
  std::vector<at::Tensor> trainable(Range range) const;
  void count_batch();
};

BlockRequest Network::Impl::request(std::size_t index, std::vector<Feature> const& features) {
  auto const& layer = spec.layers[index];
  BlockRequest request{.layer = layer,
                       .origin = spec.origin,
                       .inputs = {},
                       .scope = Scope(entries, "model." + std::to_string(index) + "."),
                       .classes = classes};
  for (int const from : layer.from) {
    request.inputs.push_back(from == LayerSpec::image
                                 ? Feature{.channels = image_channels, .stride_px = 1}
                                 : features[static_cast<std::size_t>(from)]);
  }
  return request;
}

void Network::Impl::build() {
  std::vector<Feature> features;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    auto const row = request(i, features);
    if (i + 1 == spec.layers.size()) return build_head(row);
    auto const type = block_types().find(row.layer.block);
    if (type == block_types().end()) {
      std::string known;
      for (auto const& [name, ignored] : block_types()) known += (known.empty() ? "" : ", ") + name;
      row.fail("no such block before the last layer. Known: ", known, ".");
    }
    check_arguments(row, type->second.arguments, type->second.takes_repeats);
    auto const begin = entries.size();
    auto built = type->second.build(row);
    features.push_back(built.output);
    max_stride_px = std::max(max_stride_px, built.output.stride_px);
    layers.push_back({std::move(built.block), row.layer.from, {begin, entries.size()}, {}});
  }
}

void Network::Impl::build_head(BlockRequest const& request) {
  auto const type = head_types().find(request.layer.block);
  if (type == head_types().end()) {
    std::string known;
    for (auto const& [name, ignored] : head_types()) known += (known.empty() ? "" : ", ") + name;
    request.fail("the last layer has to be a head. Known: ", known, ".");
  }
  check_arguments(request, type->second.arguments, false);
  head_range.begin = entries.size();
  head = type->second.build(request);
  head_range.end = entries.size();
  head_from = request.layer.from;
  class_branch = "model." + std::to_string(spec.layers.size() - 1) + "." + head->class_branch();
  for (auto const& input : request.inputs) strides_px.push_back(input.stride_px);
  find_last_uses();
}

void Network::Impl::find_last_uses() {
  std::vector<int> last(layers.size(), -1);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (int const from : layers[i].from) {
      if (from != LayerSpec::image) last[static_cast<std::size_t>(from)] = static_cast<int>(i);
    }
  }
  for (int const from : head_from) last[static_cast<std::size_t>(from)] = -1;
  for (std::size_t i = 0; i < last.size(); ++i) {
    if (last[i] >= 0) {
      layers[static_cast<std::size_t>(last[i])].last_used.push_back(static_cast<int>(i));
    }
  }
}

std::vector<at::Tensor> Network::Impl::trainable(Range range) const {
  std::vector<at::Tensor> tensors;
  for (auto i = range.begin; i < range.end; ++i) {
    if (entries[i].tensor.requires_grad()) tensors.push_back(entries[i].tensor);
  }
  return tensors;
}

at::Tensor Network::Impl::run_layer(Layer const& layer, std::vector<at::Tensor> const& inputs,
                                    Pass const& pass) const {
  if (!uses_checkpoint(pass) || layer.range.begin == layer.range.end) {
    return layer.block->forward(inputs, pass);
  }
  auto part = [block = layer.block.get(), pass](std::vector<at::Tensor> const& x, Round round) {
    Pass again = pass;
    again.records_statistics = round == Round::first;
    return std::vector<at::Tensor>{block->forward(x, again)};
  };
  return with_checkpoint(part, inputs, trainable(layer.range)).front();
}

HeadOutput Network::Impl::run_head(std::vector<at::Tensor> const& inputs, Pass const& pass) const {
  if (!uses_checkpoint(pass)) return head->forward(inputs, pass);
  HeadOutput output;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    output.levels.push_back({inputs[i].size(2), inputs[i].size(3), strides_px[i]});
  }
  auto part = [block = head.get(), pass](std::vector<at::Tensor> const& x, Round round) {
    Pass again = pass;
    again.records_statistics = round == Round::first;
    auto const raw = block->forward(x, again);
    return std::vector<at::Tensor>{raw.boxes, raw.scores};
  };
  auto const tensors = with_checkpoint(part, inputs, trainable(head_range));
  output.boxes = tensors[0];
  output.scores = tensors[1];
  return output;
}

HeadOutput Network::Impl::forward(at::Tensor const& images, Pass const& pass,
                                  LayerObserver const& observer) {
  std::vector<at::Tensor> maps(layers.size());
  auto const gather = [&](std::vector<int> const& from) {
    std::vector<at::Tensor> inputs;
    for (int const i : from) {
      inputs.push_back(i == LayerSpec::image ? images : maps[static_cast<std::size_t>(i)]);
    }
    return inputs;
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    maps[i] = run_layer(layers[i], gather(layers[i].from), pass);
    if (observer) observer(static_cast<int>(i), maps[i]);
    for (int const unused : layers[i].last_used) maps[static_cast<std::size_t>(unused)].reset();
  }
  return run_head(gather(head_from), pass);
}

void Network::Impl::count_batch() {
  std::vector<at::Tensor> counts;
  for (auto const& entry : entries) {
    if (entry.kind == StateKind::batch_count) counts.push_back(entry.tensor);
  }
  at::_foreach_add_(counts, 1);
}

Network::Network(GraphSpec spec, ClassCount classes) : impl_(std::make_unique<Impl>()) {
  YOLOHPC_CHECK_AS(base::ExitCode::usage, classes.value > 0, "the class count is ", classes.value,
                   ". Give at least 1.");
  impl_->spec = std::move(spec);
  impl_->classes = classes.value;
  impl_->build();
  initialise(0);
}

Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

HeadOutput Network::forward(at::Tensor const& images, LayerObserver const& observer) {
  YOLOHPC_CHECK_AS(base::ExitCode::usage, images.dim() == 4 && images.size(1) == image_channels,
                   "images have shape ", images.sizes(), ". The network takes (B, 3, H, W).");
  check_input({images.size(0), images.size(2), images.size(3)});
  auto output = impl_->forward(images, impl_->pass, observer);
  if (impl_->pass.training) impl_->count_batch();
  return output;
}

void Network::check_input(InputSize const& size) const {
  auto const stride = impl_->max_stride_px;
  YOLOHPC_CHECK_AS(base::ExitCode::usage,
                   size.height_px > 0 && size.width_px > 0 && size.height_px % stride == 0 &&
                       size.width_px % stride == 0,
                   "the input is ", size.height_px, " x ", size.width_px,
                   " px. Height and width have to be multiples of ", stride, ".");
  auto const cells = size.batch * (size.height_px / stride) * (size.width_px / stride);
  YOLOHPC_CHECK_AS(base::ExitCode::usage,
                   !impl_->pass.training || impl_->pass.batch_norm || cells > 1, "a batch of ",
                   size.batch, " image per rank with ", size.height_px, " x ", size.width_px,
                   " px leaves 1 value per channel on the map of stride ", stride,
                   ", batch norm needs 2. Use a larger --batch, fewer ranks or a larger --imgsz.");
}

void Network::set_training(bool training) {
  impl_->pass.training = training;
}
bool Network::training() const {
  return impl_->pass.training;
}
void Network::set_batch_norm(BatchNormFunction function) {
  impl_->pass.batch_norm = std::move(function);
}
void Network::set_activation_checkpoints(bool on) {
  impl_->checkpoints = on;
}

std::vector<StateEntry> const& Network::entries() const {
  return impl_->entries;
}

base::NamedTensors Network::state() const {
  base::NamedTensors state;
  for (auto const& entry : impl_->entries) state.push_back({entry.name, entry.tensor});
  return state;
}

base::NamedTensors Network::buffers() const {
  base::NamedTensors buffers;
  for (auto const& entry : impl_->entries) {
    if (!is_parameter(entry.kind)) buffers.push_back({entry.name, entry.tensor});
  }
  return buffers;
}

std::vector<Parameter> Network::parameters() const {
  std::vector<Parameter> parameters;
  for (auto const& [name, tensor, kind] : impl_->entries) {
    if (!is_parameter(kind)) continue;
    parameters.push_back({.name = name,
                          .tensor = tensor,
                          .trainable = kind != StateKind::frozen,
                          .is_bias = name.find("bias") != name.npos,
                          .is_norm = kind == StateKind::norm_weight || kind == StateKind::norm_bias,
                          .in_class_branch = name.rfind(impl_->class_branch, 0) == 0});
  }
  return parameters;
}

LoadReport Network::load_state(base::NamedTensors const& source, LoadMode mode) {
  return load_entries(impl_->entries, source, mode);
}

void Network::initialise(std::uint64_t seed) {
  initialise_entries(impl_->entries, seed);
  initialise_head_biases();
}

void Network::initialise_head_biases() {
  impl_->head->initialise_biases();
}

void Network::to(at::Device device) {
  for (auto const& entry : impl_->entries) {
    at::Tensor tensor = entry.tensor;
    tensor.set_data(tensor.detach().to(device));
  }
}

void Network::to_channels_last() {
  for (auto const& entry : impl_->entries) {
    at::Tensor tensor = entry.tensor;
    if (tensor.dim() == 4) {
      tensor.set_data(tensor.detach().contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
}

GraphSpec const& Network::spec() const {
  return impl_->spec;
}
std::int64_t Network::class_count() const {
  return impl_->classes;
}
std::vector<std::int64_t> const& Network::strides_px() const {
  return impl_->strides_px;
}
std::int64_t Network::max_stride_px() const {
  return impl_->max_stride_px;
}

std::int64_t Network::parameter_count() const {
  std::int64_t count = 0;
  for (auto const& entry : impl_->entries) {
    if (is_parameter(entry.kind)) count += entry.tensor.numel();
  }
  return count;
}

std::int64_t Network::convolution_flops(std::int64_t height_px, std::int64_t width_px) {
  check_input({2, height_px, width_px});
  // Every map grows with the input, so one run on the smallest input tells all.
  auto const stride = impl_->max_stride_px;
  std::int64_t flops = 0;
  Pass const pass{
      .training = false, .records_statistics = false, .batch_norm = {}, .flops = &flops};
  at::NoGradGuard const no_grad;
  auto const image = at::zeros({1, image_channels, stride, stride},
                               impl_->entries.front().tensor.options().requires_grad(false));
  auto const output = impl_->forward(image, pass, {});
  flops += output.boxes.size(2) * impl_->head->decode_flops_per_anchor();
  return flops * (height_px / stride) * (width_px / stride);
}

}  // namespace yolohpc::model
