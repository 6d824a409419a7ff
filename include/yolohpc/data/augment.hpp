// Training augmentation of one sample: the drawn numbers, and mosaic, affine map, mixup, HSV jitter
// and flips in one pass over the output pixels.
//
// Letters: S image size in pixels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "yolohpc/data/affine.hpp"
#include "yolohpc/data/color.hpp"
#include "yolohpc/data/pixels.hpp"

namespace yolohpc::data {

/// Ranges and probabilities, named as in the contract. Source of the defaults: spec/data.md section
/// 0.
struct AugmentSettings {
  double hsv_h = 0.015;  ///< hue gain range, share of a turn
  double hsv_s = 0.7;
  double hsv_v = 0.4;
  double degrees = 0;      ///< rotation range, degrees
  double translate = 0.1;  ///< range of the centre, share of S
  double scale = 0.5;      ///< factor uniform in 1 - scale .. 1 + scale
  double shear = 0;        ///< range, degrees
  double flipud = 0;       ///< probability
  double fliplr = 0.5;     ///< probability
  double mosaic = 1;       ///< probability
  double mixup = 0;        ///< probability

  /// \throws Error (usage)  names the option, its value and its range
  void check() const;
};

/// Where the pictures of a mosaic meet, and which they are.
struct MosaicDraw {
  int centre_x = 0;  ///< S/2 .. 3S/2 - 1
  int centre_y = 0;
  /// Pictures 1..3 (picture 0 is the sample): how many steps before this one they were in the same
  /// slot.
  std::array<int, 3> steps_back{};
};

/// The numbers of one frame: a mosaic or a single picture, and its affine map.
struct FrameDraw {
  std::optional<MosaicDraw> mosaic;
  AffineDraw affine;
};

/// A second frame mixed in: ratio * first + (1 - ratio) * second.
struct MixupDraw {
  int steps_back = 0;  ///< the sample that is picture 0 of the second frame
  FrameDraw frame;
  double ratio = 0.5;
};

/// All random numbers of one sample.
struct AugmentDraw {
  FrameDraw frame;
  std::optional<MixupDraw> mixup;
  ColorDraw color;
  bool flip_x = false;
  bool flip_y = false;
};

/// What the numbers of a sample depend on; nothing else does.
struct SampleKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint64_t position = 0;  ///< in the epoch's global order
};

/// Whether pictures are combined at all: the last epochs of a run go without.
enum class Combine { no, yes };

/// Draws the numbers of one sample from streams of its key.
/// \param window  partners were in the same slot 1 .. window steps ago; those of one mosaic are
/// distinct
///                when window is at least 3
AugmentDraw draw_augmentation(AugmentSettings const& settings, SampleKey const& key, int image_size,
                              int window, Combine combine);

/// The pictures of one frame: four for a mosaic, else one.
using FramePictures = std::vector<LoadedPicture const*>;

/// Makes one training picture and its boxes.
/// \param mixed   pictures of the second frame; empty without mixup
/// \param planes  (3, S, S) uint8 to be written: R, G, B
/// \return boxes as fractions of S: corners x1 y1 x2 y2, float32
std::vector<LabelledBox> augment(AugmentDraw const& draw, FramePictures const& pictures,
                                 FramePictures const& mixed, int image_size, std::uint8_t* planes);

}  // namespace yolohpc::data
