#include "yolohpc/data/order.hpp"

#include <algorithm>
#include <numeric>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/philox.hpp"

namespace yolohpc::data {

void check_batch_divides(std::int64_t batch, int ranks, int accumulate) {
  std::int64_t const unit = static_cast<std::int64_t>(ranks) * accumulate;
  std::int64_t const below = batch / unit * unit;
  if (batch >= 1 && batch == below) return;
  std::string const nearest =
      below >= 1 ? base::join(below, " or ", below + unit) : base::join("at least ", unit);
  base::fail(base::ExitCode::usage, "the global batch is ", batch, ", which ", ranks,
             " ranks x accumulation ", accumulate,
             " do not divide (each rank needs the same whole number of images). Use --batch ",
             nearest, ".");
}

Share contiguous_share(std::int64_t count, int rank, int size) {
  std::int64_t const each = count / size;
  std::int64_t const longer = count % size;
  return {rank * each + std::min<std::int64_t>(rank, longer), each + (rank < longer ? 1 : 0)};
}

SampleOrder::SampleOrder(OrderSettings const& settings) : settings_(settings) {
  YOLOHPC_CHECK_AS(base::ExitCode::usage, settings.batch >= 1, "the global batch is ",
                   settings.batch, " (at least 1 is needed). Use a larger --batch.");
  YOLOHPC_CHECK_AS(base::ExitCode::usage, settings.samples >= settings.batch,
                   "the training split has ", settings.samples, " images, the global batch is ",
                   settings.batch,
                   " (one batch cannot be filled with different images). Use --batch ",
                   std::max<std::int64_t>(settings.samples, 1), " or less, or more images.");
  steps_per_epoch_ = (settings.samples + settings.batch - 1) / settings.batch;
}

SampleOrder::Position SampleOrder::position(std::int64_t step) const {
  std::int64_t epoch = step / steps_per_epoch_;
  if (step % steps_per_epoch_ < 0) --epoch;
  return {epoch, step - epoch * steps_per_epoch_};
}

std::vector<std::uint32_t> const& SampleOrder::permutation(std::int64_t epoch) {
  auto const [place, is_new] = permutations_.try_emplace(epoch);
  auto& permutation = place->second;
  if (is_new) {
    permutation.resize(static_cast<std::size_t>(settings_.samples));
    std::iota(permutation.begin(), permutation.end(), 0u);
    // Epochs before the first take the keys from the top of the 32-bit range.
    base::Philox random(settings_.seed, static_cast<std::uint32_t>(epoch), 0, base::Purpose::order);
    base::shuffle_in_place(permutation, random);
  }
  return permutation;
}

std::uint32_t SampleOrder::sample_at(std::int64_t step, std::int64_t slot) {
  auto const [epoch, step_in_epoch] = position(step);
  std::int64_t const entry = (step_in_epoch * settings_.batch + slot) % settings_.samples;
  return permutation(epoch)[static_cast<std::size_t>(entry)];
}

void SampleOrder::forget_before(std::int64_t step) {
  permutations_.erase(permutations_.begin(), permutations_.lower_bound(position(step).epoch));
}

}  // namespace yolohpc::data
