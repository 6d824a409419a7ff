// The parameters of a network as views into one flat tensor, their gradients as views into another.
//
// Letters: F elements of a flat buffer, padding included; P trainable parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/base/named_tensors.hpp"

namespace yolohpc::parallel {

/// One trainable parameter on its way into the flat buffers.
struct FlatParameter {
  std::string name;
  at::Tensor tensor;              ///< requires grad; its storage is replaced, its identity stays
  int group = 0;                  ///< index of the optimizer's parameter group, at least 0
  std::int64_t order_of_use = 0;  ///< position in the forward pass; ties keep the order of the list
};

enum class WeightLayout {
  channels_last,  ///< 4-D weights in the order O, kh, kw, I
  row_major,      ///< every parameter as its shape says
};

struct FlatSettings {
  /// A bucket is closed before it would pass this; a larger parameter has a bucket of its own.
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  /// Small networks are cut finer than `bucket_bytes`, into about this many buckets: with one
  /// bucket nothing is left of the backward pass when its reduction starts.
  int least_buckets = 8;
  /// ... but not below this size, where the latency of a message outweighs what is hidden.
  std::int64_t least_bucket_bytes = std::int64_t{256} << 10;
  WeightLayout layout = WeightLayout::channels_last;
};

/// Where one parameter lies in a flat buffer.
struct FlatSlot {
  std::string name;
  int group;
  int bucket;
  std::int64_t begin;  ///< first element; a multiple of FlatBuffers::alignment_elements
  std::int64_t numel;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

/// A run of elements, padding included.
struct FlatRange {
  int bucket;
  int group;  ///< -1 for a whole bucket
  std::int64_t begin;
  std::int64_t numel;
};

/// Lays parameters and gradients into two flat tensors.
///
/// Buckets hold the parameters in reverse order of use, so that the first bucket is complete first
/// in a backward pass. They are cut from the input side of the network with a small one, the last
/// to be complete, whose reduction nothing can hide. Inside a bucket the parameters are sorted by
/// group, so that an optimizer meets few long runs. Each parameter begins at a multiple of 64
/// bytes; the padding between is zero and stays zero under every update rule that maps (0, gradient
/// 0, state 0) to 0.
///
/// The layout depends on names, sizes, groups, order and settings alone, never on the rank, so all
/// ranks have the same one. It must not leak into files: state travels through export_flat and
/// import_flat.
class FlatBuffers {
 public:
  static constexpr std::int64_t alignment_elements = 16;

  /// Replaces the storage of every tensor (values are kept) and sets its gradient to a zero view.
  /// Parameters that do not train are not to be passed.
  /// \throws Error  no parameter; two of one name; one that does not require grad or is no leaf;
  ///         not all of one type and device; a negative group
  explicit FlatBuffers(std::vector<FlatParameter> const& parameters,
                       FlatSettings const& settings = {});

  /// (F) all parameters; (F) all gradients. Both contiguous, on the device of the parameters.
  at::Tensor const& parameters() const { return parameters_; }
  at::Tensor const& gradients() const { return gradients_; }
  /// The slots in flat order; bucket b covers buckets()[b].
  std::vector<FlatSlot> const& slots() const { return slots_; }
  std::vector<FlatRange> const& buckets() const { return buckets_; }
  /// The longest runs that lie in one bucket and one group, in flat order.
  std::vector<FlatRange> const& group_ranges() const { return group_ranges_; }
  /// The parameter tensors as passed, in the order of slots().
  std::vector<at::Tensor> const& tensors() const { return tensors_; }

  /// All gradients to zero, in one pass over memory.
  void zero_grad();
  /// A gradient that autograd has put elsewhere (a graph of the gradient was asked for, or someone
  /// cleared it) is no longer reduced nor zeroed.
  /// \throws Error  names the first such parameter
  void check_gradients_in_place() const;

  /// A zero (F) tensor like parameters(): a moment, an average.
  at::Tensor make_flat() const;
  /// (F) -> (numel); shares memory with `flat`.
  at::Tensor slice(at::Tensor const& flat, FlatRange const& range) const;
  /// The part of `flat` that belongs to slot `index`, in the parameter's shape; shares memory with
  /// `flat`.
  at::Tensor view(at::Tensor const& flat, std::size_t index) const;

  /// The view of every parameter, called name + suffix, in the order in which the parameters were
  /// passed. Shapes, names and order are the same for every layout, bucket size and rank count, and
  /// so are the bytes of a file they are serialised into. Shares memory with `flat`: clone what has
  /// to stay.
  base::NamedTensors export_flat(at::Tensor const& flat, std::string const& suffix = "") const;
  /// Fills `flat` from what export_flat gave. Tensors of other names are ignored.
  /// \throws Error (bad data)  a parameter is missing or has another shape
  void import_flat(base::NamedTensors const& state, at::Tensor const& flat,
                   std::string const& suffix = "") const;

 private:
  std::vector<FlatSlot> slots_;
  std::vector<FlatRange> buckets_;
  std::vector<FlatRange> group_ranges_;
  std::vector<at::Tensor> tensors_;
  std::vector<std::size_t> passed_order_;  ///< slot of the i-th parameter that was passed
  at::Tensor parameters_;
  at::Tensor gradients_;
};

}  // namespace yolohpc::parallel
