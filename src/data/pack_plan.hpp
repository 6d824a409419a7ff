// What will be packed, decided from labels and image checks alone, so that every rank decides the
// same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "yolohpc/data/packer.hpp"

#include "image_check.hpp"
#include "shard_format.hpp"

namespace yolohpc::data {

struct PackPlan {
  std::vector<std::size_t> kept;         ///< images of the source, in its order
  std::vector<std::size_t> shard_begin;  ///< (shards + 1) places in `kept`
  PackReport report;                     ///< complete but for `packed`

  int shard_count() const { return static_cast<int>(shard_begin.size()) - 1; }
};

/// \param checks  one for each image of the source; those of excluded images are not looked at
PackPlan make_plan(LabelSource const& source, std::vector<ImageCheck> const& checks,
                   PackSettings const& settings);

ShardHeader header_of_shard(LabelSource const& source, PackPlan const& plan, int shard);
ShardTables tables_of_shard(LabelSource const& source, std::vector<ImageCheck> const& checks,
                            PackPlan const& plan, int shard);

/// Annotations of an image in pixels of the turned picture.
std::vector<Annotation> annotations_of(LabelSource const& source, std::size_t image, int width_px,
                                       int height_px);

}  // namespace yolohpc::data
