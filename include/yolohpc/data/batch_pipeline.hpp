// BatchPipeline: threads that fill batches ahead of the consumer, in order and within bounds.
//
// Letters: B images of a batch, H W pixels.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "yolohpc/data/batch.hpp"
#include "yolohpc/data/sample_source.hpp"

namespace yolohpc::data {

/// Memory of one thread, kept from picture to picture.
struct WorkerScratch {
  LoadScratch load;
  Image resized;
  Image letterboxed;
};

/// One image of a batch, besides its pixels.
struct MadeSample {
  std::vector<LabelledBox> boxes;  ///< corners as fractions of W and H
  std::int64_t image_id = 0;
  std::uint32_t sample = 0;
  ImageGeometry geometry;
  bool replaced = false;
};

struct BatchShape {
  std::int64_t images = 0;  ///< B
  Size size;                ///< H, W
};

/// Says what the batches hold. `make` is called from many threads at once, the others under a lock.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// Shape of batch `batch` (0, 1, ...), nothing after the last.
  virtual std::optional<BatchShape> shape(std::int64_t batch) = 0;
  /// Makes image `slot` of a batch.
  ///
  /// \param planes  (3, H, W) uint8 to be written
  virtual MadeSample make(std::int64_t batch, std::int64_t slot, std::uint8_t* planes,
                          WorkerScratch& scratch) = 0;
  /// Batch `batch` was handed out: nothing of it is asked for again.
  virtual void handed_out(std::int64_t batch) = 0;
};

/// Memory of the pixel tensors. `pinned` needs a build and a machine with CUDA.
enum class HostMemory { pageable, pinned };

/// Gives out (B, 3, H, W) uint8 tensors over memory that comes back when the last tensor that
/// shares it dies, in whatever thread. Thread-safe.
class TensorPool {
 public:
  explicit TensorPool(HostMemory memory) : memory_(memory) {}
  at::Tensor take(BatchShape const& shape);

 private:
  /// Outlives the pool while tensors are about.
  struct Shelf {
    std::mutex mutex;
    std::deque<at::Tensor> free;
  };
  HostMemory memory_;
  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
};

/// Batches 0, 1, 2, ... of a BatchMaker. The result does not depend on the number of threads.
///
/// The unit of work is one image. At most `prefetch` batches are begun or ready at any time. What a
/// thread throws comes out of the `next` that would have returned its batch.
class BatchPipeline {
 public:
  struct Settings {
    int workers = 1;   ///< threads; 0: batches are made inside next()
    int prefetch = 2;  ///< batches made ahead, at least 1
    HostMemory memory = HostMemory::pageable;
  };

  /// \param maker  must outlive the pipeline
  /// \throws Error (usage)  a negative number of workers, or prefetch below 1
  BatchPipeline(BatchMaker& maker, Settings const& settings);
  BatchPipeline(BatchPipeline const&) = delete;
  BatchPipeline& operator=(BatchPipeline const&) = delete;
  /// Ends the threads after the image each is at.
  ~BatchPipeline();

  /// The next batch, nothing after the last.
  ///
  /// \throws whatever making the batch threw
  std::optional<Batch> next();

  /// Seconds that next() waited for batches so far.
  double wait_s() const { return wait_s_; }

 private:
  struct OpenBatch {
    std::int64_t number = 0;
    at::Tensor images;
    std::vector<MadeSample> samples;
    std::int64_t claimed = 0;
    std::int64_t missing = 0;
    std::exception_ptr fault;
  };
  struct Claim {
    OpenBatch* batch = nullptr;
    std::int64_t slot = 0;
  };

  void work();
  std::optional<Claim> claim();
  bool open_next();
  void fill(Claim const& claim, WorkerScratch& scratch);

  BatchMaker& maker_;
  Settings settings_;
  TensorPool pool_;
  std::mutex mutex_;
  std::condition_variable room_;   ///< a worker may find work
  std::condition_variable ready_;  ///< the first batch is complete, or there is none
  std::deque<std::unique_ptr<OpenBatch>> open_;
  std::int64_t next_number_ = 0;
  bool ended_ = false;
  bool stopping_ = false;
  double wait_s_ = 0;
  WorkerScratch own_scratch_;
  std::vector<std::jthread> threads_;
};

}  // namespace yolohpc::data
