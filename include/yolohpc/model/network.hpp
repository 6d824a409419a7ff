// Network: a detector built from a GraphSpec; forward pass, state dict, parameters.
//
// Letters: B images, H W pixels, A anchor points, C classes, R bins of a distance.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/base/named_tensors.hpp"
#include "yolohpc/model/graph_spec.hpp"
#include "yolohpc/model/head_output.hpp"
#include "yolohpc/model/pass.hpp"
#include "yolohpc/model/state.hpp"

namespace yolohpc::model {

struct ClassCount {
  std::int64_t value;
};

/// What one image batch is, for checks before anything is computed.
struct InputSize {
  std::int64_t batch = 1;
  std::int64_t height_px = 640;
  std::int64_t width_px = 640;
};

/// Called with the number of a layer and its output (B, C, h, w), in order; not for the head.
using LayerObserver = std::function<void(int layer, at::Tensor const& output)>;

/// A detector. Its parameters start as float32 on the CPU with the values of initialise(0).
///
/// Tensors keep their identity: `state()` and `parameters()` always return the same handles, and
/// moving, re-striding or loading changes what is under them. Several networks can exist side by
/// side (EMA).
class Network {
 public:
  /// \throws Error (usage)  a block or argument is unknown, or shapes do not fit: file, line,
  /// reason
  Network(GraphSpec spec, ClassCount classes);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  /// \param images  (B, 3, H, W) float, 0 to 1, RGB; any memory format; H and W multiples of
  /// max_stride() \throws Error (usage)  the input does not fit: see check_input
  HeadOutput forward(at::Tensor const& images, LayerObserver const& observer = {});

  /// Refuses heights and widths that are no multiple of max_stride(), and, in training, a batch
  /// that leaves one value per channel on the coarsest map (batch norm would divide by zero).
  /// \throws Error (usage)
  void check_input(InputSize const& size) const;

  /// In training, batch norm uses and records the statistics of the batch. True at first.
  void set_training(bool training);
  bool training() const;
  /// Replaces batch norm by `function` (statistics over several ranks); an empty one restores the
  /// built-in.
  void set_batch_norm(BatchNormFunction function);
  /// Keep only the inputs of layers for the backward pass and compute each layer a second time
  /// there: less memory, about a third more time, the same numbers. Off at first.
  void set_activation_checkpoints(bool on);

  /// All entries in state-dict order; the tensors share storage with the network.
  base::NamedTensors state() const;
  std::vector<StateEntry> const& entries() const;
  /// Parameters in state-dict order.
  std::vector<Parameter> parameters() const;
  /// Running means and variances and batch counts in state-dict order.
  base::NamedTensors buffers() const;

  /// Copies values in; types are converted. Nothing changes when it throws.
  /// \throws Error (bad data)  strict: names that are missing, unknown or of another shape (all are
  /// listed, up
  ///                           to ten)
  LoadReport load_state(base::NamedTensors const& source, LoadMode mode);

  /// Fills every entry. The same seed gives the same values everywhere. Source: spec/model.md,
  /// section 6.
  void initialise(std::uint64_t seed);
  /// The biases of the head's last convolutions alone: 2 for boxes, ln(5 / C / (640 / stride)^2)
  /// for classes.
  void initialise_head_biases();

  /// Moves all tensors; handles stay valid.
  void to(at::Device device);
  /// Gives convolution weights channels-last strides. Inputs should have them too.
  void to_channels_last();

  GraphSpec const& spec() const;
  std::int64_t class_count() const;
  /// Strides of the head's maps in pixels, finest first.
  std::vector<std::int64_t> const& strides_px() const;
  std::int64_t max_stride_px() const;
  std::int64_t parameter_count() const;
  /// Twice the multiply-adds of all convolutions for one image, the frozen one of the decoder
  /// included. Source: spec/model.md, section 3, last row.
  std::int64_t convolution_flops(std::int64_t height_px, std::int64_t width_px);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace yolohpc::model
