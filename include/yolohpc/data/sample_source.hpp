// SampleSource: where a loader gets decoded pictures and their boxes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "yolohpc/data/image.hpp"
#include "yolohpc/data/pixels.hpp"
#include "yolohpc/data/shard_set.hpp"

namespace yolohpc::data {

/// What a thread keeps between loads, so that pictures are decoded into memory that is already
/// there.
struct LoadScratch {
  ImageDecoder decoder;
  std::vector<std::byte> bytes;
  Image picture;  ///< the result of the last load
};

/// A data set of N pictures with boxes. All methods may be called from any thread.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual std::int64_t size() const = 0;
  virtual std::int64_t image_id(std::uint32_t sample) const = 0;
  /// The size that the picture will have, known without decoding it.
  virtual Size picture_size(std::uint32_t sample) const = 0;
  /// Boxes to learn from: inside the picture, not empty; its pixels.
  virtual std::vector<LabelledBox> boxes(std::uint32_t sample) const = 0;
  /// Reads and decodes into `scratch.picture`.
  /// \throws Error (bad data)  the record cannot be used; the text names it
  virtual void load(std::uint32_t sample, LoadScratch& scratch) const = 0;
};

/// The pictures of a packed split. The set must outlive the source.
std::unique_ptr<SampleSource> make_shard_source(ShardSet const& shards);

}  // namespace yolohpc::data
