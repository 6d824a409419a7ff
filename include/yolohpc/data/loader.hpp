// TrainLoader and ValLoader: batches of one rank, made ahead by threads.
//
// Letters: N images of the data set, B global batch, R ranks, S image size in pixels.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "yolohpc/data/augment.hpp"
#include "yolohpc/data/batch.hpp"
#include "yolohpc/data/batch_pipeline.hpp"
#include "yolohpc/data/image_window.hpp"
#include "yolohpc/data/order.hpp"
#include "yolohpc/data/sample_source.hpp"

namespace yolohpc::data {

struct TrainLoaderSettings {
  std::int64_t batch = 16;  ///< B, over all ranks
  int rank = 0;
  int size = 1;        ///< R
  int accumulate = 1;  ///< micro-batches that this rank's share of a batch is cut into
  int image_size = 640;
  std::uint64_t seed = 0;
  AugmentSettings augment;
  /// Epochs from this one on combine no pictures (no mosaic, no mixup): epochs - close_mosaic.
  std::int64_t combining_epochs = std::numeric_limits<std::int64_t>::max();
  /// Steps that mosaic and mixup partners may be old. Each rank keeps window * B / R resized
  /// pictures.
  int window = 16;
  OnBadSample on_bad_sample = OnBadSample::replace;
  std::int64_t first_epoch = 0;  ///< where to begin: a resumed run begins in the middle
  std::int64_t first_step = 0;   ///< step in that epoch
  BatchPipeline::Settings pipeline;
};

/// Endless training batches. For one seed the images, boxes and their order depend on nothing but
/// the position: not on R, accumulation, threads, or where the run was resumed. Global batches,
/// partners and random numbers: see SampleOrder and draw_augmentation.
///
/// next() gives micro-batch 0, 1, ... of a step, then the next step, then the next epoch. Each
/// holds B / (R * accumulate) images; the concatenation over micro-batches and ranks in order is
/// the global batch.
///
/// A record that cannot be read is replaced (see ImageWindow) or ends next() with its error.
class TrainLoader {
 public:
  /// \param source  must outlive the loader
  /// \throws Error (usage)  B does not divide by R * accumulate, N is below B, a setting is out of
  /// range
  TrainLoader(SampleSource const& source, TrainLoaderSettings const& settings);
  ~TrainLoader();
  TrainLoader(TrainLoader const&) = delete;
  TrainLoader& operator=(TrainLoader const&) = delete;

  /// \throws Error (bad data)  a record cannot be read and the policy is `fail`
  Batch next();

  std::int64_t steps_per_epoch() const;
  /// Epoch and step of the batch that next() will return.
  SampleOrder::Position next_position() const;
  /// Bad records met since the last call, each once.
  std::vector<BadRecord> take_bad_records();
  /// Seconds that next() waited so far.
  double data_wait_s() const;
  /// Pictures decoded so far by this rank.
  std::int64_t decoded() const;

 private:
  class Maker;
  std::unique_ptr<Maker> maker_;
  std::unique_ptr<BatchPipeline> pipeline_;
  std::int64_t returned_ = 0;
  TrainLoaderSettings settings_;
};

/// How validation pictures are framed.
enum class Framing {
  square,       ///< S x S, the picture in the middle
  rectangular,  ///< batches of like aspect ratio, see rectangular_batches
};

struct ValLoaderSettings {
  std::int64_t batch = 16;  ///< of this rank
  int rank = 0;
  int size = 1;
  int image_size = 640;
  Framing framing = Framing::square;
  OnBadSample on_bad_sample = OnBadSample::replace;
  BatchPipeline::Settings pipeline;
};

/// One pass over a data set, each image exactly once over all ranks, without augmentation: resized
/// on load, then letterboxed without scaling up (spec/data.md sections 2 and 6).
///
/// Square: rank r takes contiguous_share(N, r, R), in the order of the data set. Rectangular: the
/// global list of batches is dealt so. A rank may have nothing. A record that cannot be read
/// becomes a picture of the border colour without boxes, under its own image id.
class ValLoader {
 public:
  /// \param source  must outlive the loader
  /// \throws Error (usage)  a setting is out of range
  ValLoader(SampleSource const& source, ValLoaderSettings const& settings);
  ~ValLoader();
  ValLoader(ValLoader const&) = delete;
  ValLoader& operator=(ValLoader const&) = delete;

  /// The next batch with the geometry of each image; the last one may be smaller; nothing after it.
  std::optional<Batch> next();

  /// Images and batches of this rank.
  std::int64_t images() const;
  std::int64_t batches() const;
  std::vector<BadRecord> take_bad_records();
  double data_wait_s() const;

 private:
  class Maker;
  std::unique_ptr<Maker> maker_;
  std::unique_ptr<BatchPipeline> pipeline_;
};

}  // namespace yolohpc::data
