// Optimizers on flat shards: SGD with Nesterov momentum, AdamW, and MuSGD.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "yolohpc/optim/param_groups.hpp"

namespace yolohpc::optim {

/// A run of parameters of one group in a flat buffer, and their gradients. S elements, any number
/// of whole or cut parameters. The optimizer reads `grad` and writes `param` in place at every
/// step.
struct Segment {
  at::Tensor param;  ///< (S) float32, contiguous
  at::Tensor grad;   ///< (S) float32, contiguous, same device
  int group = 0;
};

/// One convolution kernel under MuSGD. Both tensors are views into one segment (all elements inside
/// it, at the same place in `param` and `grad`), dense, in any order of strides. It may not be cut:
/// a rank owns all of a muon kernel or nothing.
struct KernelSlot {
  at::Tensor param;  ///< (Cout, Cin, kh, kw) float32
  at::Tensor grad;   ///< (Cout, Cin, kh, kw) float32
  int group = 0;     ///< of kind GroupKind::muon
};

/// What a group gets in one step.
struct GroupHyper {
  double lr = 0;
  double weight_decay = 0;
  double momentum = 0;  ///< for AdamW beta1
};

/// State of one role ("momentum", "exp_avg", "exp_avg_sq", "muon_momentum").
struct RoleState {
  std::string role;
  /// One (S) float32 tensor per segment, laid out as the segment's parameters; undefined where the
  /// role does not apply. Shares memory with the optimizer: copy out to save, copy_ in to load.
  std::vector<at::Tensor> of_segment;
};

/// Updates the parameters of its segments from their gradients. State lives per segment in the
/// segment's own layout, so that the owner of the layout can export it per parameter, whatever the
/// rank count.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer() = default;
  Optimizer(Optimizer const&) = delete;
  Optimizer& operator=(Optimizer const&) = delete;

  virtual OptimizerKind kind() const = 0;

  /// One step.
  /// \param groups     indexed by Segment::group
  /// \param found_inf  () float32 on the segments' device. Where it is 1, parameters and state keep
  /// their
  ///                   values, without a wait of the host for the device. Undefined: the step is
  ///                   taken.
  virtual void step(std::span<GroupHyper const> groups, at::Tensor const& found_inf) = 0;

  /// Roles in a fixed order.
  virtual std::vector<RoleState> state() const = 0;
  /// Steps taken so far, skipped ones not counted: () float32 on the segments' device, shares
  /// memory with the optimizer. AdamW needs it in a resume; the others keep it for information.
  at::Tensor const& steps() const { return steps_; }

 protected:
  at::Tensor steps_;
};

struct AdamSettings {
  double beta2 = 0.999;
  double eps = 1e-8;
};

/// g += wd p;  v = mu v + g;  p -= lr (g + mu v).   v starts at 0.
/// \throws Error  a segment is not 1-D contiguous float32, or `grad` does not match `param`
std::unique_ptr<Optimizer> make_sgd(std::vector<Segment> segments);

/// p *= 1 - lr wd;  m, v: moving averages of g, g^2;
/// p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps),  t: steps taken, this one
/// included. Source: Loshchilov and Hutter, arXiv:1711.05101.
std::unique_ptr<Optimizer> make_adamw(std::vector<Segment> segments, AdamSettings settings = {});

/// For each kernel: M = mu M + (1 - mu) g;  u = mu M + (1 - mu) g;  p -= 0.2 lr orthogonalised(u).
/// Then SGD on every segment, kernels included (with decay on the moved p).
/// \param segments  all groups, muon included
/// \throws Error  a kernel is not inside one segment
/// Source: Jordan et al., Muon; the reference recipe, fixture train_musgd.json.
std::unique_ptr<Optimizer> make_musgd(std::vector<Segment> segments,
                                      std::vector<KernelSlot> kernels);

/// By kind; `kernels` is looked at by MuSGD only.
std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, std::vector<Segment> segments,
                                          std::vector<KernelSlot> kernels);

}  // namespace yolohpc::optim
