// Sums gradients over the ranks, bucket by bucket, while the backward pass goes on.
#pragma once

#include <cstdint>
#include <memory>

#include "yolohpc/parallel/flat_buffers.hpp"

namespace yolohpc::comm {
class Communicator;
}

namespace yolohpc::parallel {

enum class Overlap { off, on };

/// What stands in the gradient buffer after a step. g_r is the gradient that rank r accumulated.
enum class GradientRule {
  sum,  ///< sum over r of g_r. With the loss B_r * sum(L_r) on each rank this is the reference's
        ///< rule
  average,  ///< (1 / size) sum over r of g_r
};

enum class MicroBatch {
  more_follow,  ///< gradients are only accumulated here
  last,         ///< ... and are reduced in this backward pass
};

struct ReducerSettings {
  Overlap overlap = Overlap::on;
  GradientRule rule = GradientRule::sum;
};

struct ReduceReport {
  double exposed_wait_s = 0;    ///< host time spent waiting in finish()
  int buckets_in_backward = 0;  ///< reductions that were started while the backward pass ran
  std::int64_t bytes = 0;       ///< gradient bytes given to the communicator by this rank
};

/// Reduces the gradients of a FlatBuffers. One step is
///
///     flat.zero_grad();
///     for each micro-batch: reducer.begin_micro_batch(...); forward; backward;
///     report = reducer.finish();
///
/// Order guarantee: every rank starts the reductions of buckets 0, 1, 2, ... in that order, each
/// exactly once a step. A bucket that is complete early waits for the lower-numbered ones; a bucket
/// with a parameter that got no gradient in the last micro-batch is started by finish(). So ranks
/// agree on the sequence of collectives even when a branch of the network was not used on some of
/// them.
///
/// The spec's rule (loss.md, section 5): each rank back-propagates B_r * sum(L_r), and the update
/// uses the sum of these gradients over ranks: GradientRule::sum, without the factor `world size`
/// that the reference puts into the loss only because it averages afterwards.
///
/// With one rank nothing is hooked and nothing is sent.
class Reducer {
 public:
  /// Hooks itself onto the parameters of `flat`; both arguments must outlive it.
  /// \throws Error  a parameter carries a hook already
  Reducer(FlatBuffers& flat, comm::Communicator& communicator, ReducerSettings settings = {});
  Reducer(Reducer const&) = delete;
  Reducer& operator=(Reducer const&) = delete;
  /// Takes the hooks off.
  ~Reducer();

  /// Before the forward pass of each micro-batch.
  /// \throws Error  the last one is already begun
  void begin_micro_batch(MicroBatch which);
  /// After the backward pass of the last micro-batch: starts the reductions that are left, waits
  /// for all. Afterwards the gradient buffer holds the same bits on every rank. On a device the
  /// wait is one of its stream, not of the host.
  /// \throws Error  the last micro-batch was not begun; a gradient left the buffer; communication
  ///         failed
  ReduceReport finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace yolohpc::parallel
