// What a training step costs: the full step against forward, loss and backward alone, in one run.
#pragma once

#include <cstdint>
#include <vector>

#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/train/settings.hpp"

namespace yolohpc::train {

struct BenchStepSettings {
  TrainSettings train;  ///< model, batch, image size, seed, device, engine
  std::int64_t classes = 80;
  std::int64_t boxes_per_image = 8;
  std::int64_t steps = 20;  ///< measured in one repeat
  std::int64_t warmup_steps = 3;
  std::int64_t repeats = 5;
};

/// Medians over the repeats; a repeat of the full step and one of the bare step follow each other,
/// so that a machine that changes its speed changes it for both.
struct BenchStepResult {
  std::int64_t batch = 0;                 ///< images of all ranks
  std::vector<double> images_per_s;       ///< full step, by repeat
  std::vector<double> bare_images_per_s;  ///< forward, loss, backward on every rank, by repeat
  double median_images_per_s = 0;
  double median_bare_images_per_s = 0;
  double median_ratio = 0;   ///< of full to bare, pair by pair
  double forward_share = 0;  ///< of the full step's time, rank 0
  double backward_share = 0;
  double comm_wait_share = 0;
  double optimizer_share = 0;
  double peak_memory_mib = 0;  ///< largest of the ranks
};

/// Trains on synthetic batches: random pixels, `boxes_per_image` random boxes, images already in
/// host memory. The full step converts pixels, computes, reduces, clips, updates and averages; the
/// bare one has ready float images and no optimizer, average or communication. Collective.
BenchStepResult bench_step(BenchStepSettings const& settings, comm::Communicator& communicator);

}  // namespace yolohpc::train
