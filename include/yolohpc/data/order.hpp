// The order of samples: which image every slot of every global batch holds, for any number of
// ranks.
//
// Letters: N images of the data set, B global batch, R ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace yolohpc::data {

/// \throws Error (usage)  `batch` is not a multiple of ranks * accumulate: names all three and the
/// nearest
///                        batches that are
void check_batch_divides(std::int64_t batch, int ranks, int accumulate);

/// A run of consecutive numbers: first .. first + count - 1.
struct Share {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(Share const&) const = default;
};

/// Cuts 0 .. count-1 into `size` consecutive runs whose lengths differ by at most one, longer runs
/// first. Runs may be empty. Source: spec/data.md section 14 (validation).
Share contiguous_share(std::int64_t count, int rank, int size);

struct OrderSettings {
  std::int64_t samples = 0;  ///< N
  std::int64_t batch = 16;   ///< B
  std::uint64_t seed = 0;
};

/// One global permutation per epoch, cut into global batches.
///
/// Global batch g of an epoch is entries g B .. g B + B - 1 of the permutation; the last batch is
/// filled up from the beginning of the same permutation. So each image occurs at least once in an
/// epoch, fewer than B of them twice, and every epoch has ceil(N / B) steps whatever the rank
/// count. Rank r of R takes the slots r B/R .. (r + 1) B/R - 1, in order: the global batches do not
/// depend on R.
///
/// Steps count on through the epochs (step t is batch t mod steps of epoch t / steps) and reach
/// into the past: negative steps belong to epochs -1, -2, ... with permutations of their own, so
/// that mosaic partners are defined from the very first step.
///
/// Mosaic partners of slot s at step t are what slot s held at steps t-1 .. t-W. Whatever R is, the
/// rank that owns slot s now decoded those images itself, and they follow from (seed, t, s) alone.
///
/// Not thread-safe: permutations are made when first asked for.
class SampleOrder {
 public:
  /// \throws Error (usage)  N below B, or B below 1: names both
  explicit SampleOrder(OrderSettings const& settings);

  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  std::int64_t batch() const { return settings_.batch; }

  /// Epoch and step in the epoch (0 .. steps_per_epoch - 1) of a step counted through the epochs.
  struct Position {
    std::int64_t epoch = 0;
    std::int64_t step = 0;
  };
  Position position(std::int64_t step) const;

  /// The permutation of 0 .. N-1 that epoch `epoch` follows.
  std::vector<std::uint32_t> const& permutation(std::int64_t epoch);

  /// The image (0 .. N-1) in slot `slot` (0 .. B-1) of global step `step`.
  std::uint32_t sample_at(std::int64_t step, std::int64_t slot);

  /// Drops permutations of epochs before the one of `step`.
  void forget_before(std::int64_t step);

 private:
  OrderSettings settings_;
  std::int64_t steps_per_epoch_ = 0;
  std::map<std::int64_t, std::vector<std::uint32_t>> permutations_;
};

}  // namespace yolohpc::data
