// Matches: which detections hit which objects, image by image; what ranks send instead of boxes.
//
// Matching needs one image at a time and happens on the rank that has it. What it leaves is 24
// bytes a detection; the curves are drawn once from the merged parts. The parts may be made and
// merged in any order: the numbers are the same to the last bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "yolohpc/eval/coco.hpp"

namespace yolohpc::eval {

/// One image of an evaluation. Objects and detections in file or emission order.
struct CocoImage {
  std::int64_t id = 0;
  std::span<CocoObject const> objects;
  std::span<CocoDetection const> detections;
};

class Matches {
 public:
  /// \param category_ids  any order, repetitions count once
  /// \throws Error (usage)  limits that are not positive and ascending
  explicit Matches(std::span<std::int64_t const> category_ids, CocoSettings const& settings = {});

  /// Matches one image. Objects and detections of other categories than the given ones are left
  /// out. Source: spec/evaluation.md section 3. \throws Error (bad data)  a score is not finite
  void add_image(CocoImage const& image);

  /// Takes over the images of another part. \throws Error  other categories or limits
  void merge(Matches const& other);

  /// The part as bytes, and back. Both ends must be machines of one kind.
  /// \throws Error  the bytes are not what to_bytes() wrote
  std::vector<std::byte> to_bytes() const;
  static Matches from_bytes(std::span<std::byte const> bytes);

  /// The numbers over exactly these images. Source: spec/evaluation.md sections 4 and 5.
  /// \param image_ids  any order, repetitions count once
  /// \throws Error  an image is missing, was added twice or is not among them; says its id
  CocoResults results(std::span<std::int64_t const> image_ids) const;

  CocoSettings settings() const { return {limits_}; }

  /// One image and category that have objects or detections.
  struct Pair {
    std::int64_t image_id;
    std::int32_t category;                                ///< position among the ascending ids
    std::uint32_t detections;                             ///< that were kept, best first
    std::array<std::uint32_t, area_range_count> objects;  ///< countable ones
  };
  /// Bit t of entry a: at IoU threshold t in area range a the detection is a hit, or is a false
  /// one. Neither means that it is ignored.
  struct Verdict {
    std::array<std::uint16_t, area_range_count> hit;
    std::array<std::uint16_t, area_range_count> miss;
  };

 private:
  std::vector<std::int64_t> category_ids_;  // ascending
  std::array<int, 3> limits_{};
  std::int64_t detections_given_ = 0;
  std::vector<std::int64_t> image_ids_;
  std::vector<Pair> pairs_;
  // Of all pairs one after the other, best score first.
  std::vector<double> scores_;
  std::vector<Verdict> verdicts_;
};

}  // namespace yolohpc::eval
