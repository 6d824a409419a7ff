// Sizes and places of pictures: resize on load, letterbox, rectangular batches, and the way back.
//
// All sizes and positions are pixels. x runs with the width, y with the height.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace yolohpc::data {

struct Size {
  int height = 0;
  int width = 0;
  bool operator==(Size const&) const = default;
};

/// A box by its corners, pixels or a fraction of the picture as the user says.
struct Corners {
  float x1 = 0;
  float y1 = 0;
  float x2 = 0;
  float y2 = 0;
  bool operator==(Corners const&) const = default;
};

/// How a picture came into the network input: x_network = x_original * gain_x + pad_x, likewise y.
struct ImageGeometry {
  Size original;      ///< the picture as the data set knows it
  double gain_x = 1;  ///< no unit
  double gain_y = 1;
  int pad_x = 0;  ///< left border
  int pad_y = 0;  ///< upper border
};

/// The size of a picture after loading: r = image_size / max(h, w); if r is not 1 each side becomes
/// min(ceil(side * r), image_size). Source: spec/data.md section 2.
/// \throws Error  a side or image_size is below 1
Size loaded_size(Size original, int image_size);

/// Where a letterbox puts a picture of size `resized`; the rest of the target is the border colour.
struct Letterbox {
  Size resized;
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  double ratio = 1;  ///< unrounded ratio by which labels move
  Size target() const { return {resized.height + top + bottom, resized.width + left + right}; }
};

enum class ScaleUp { no, yes };
/// Where the border goes: on both sides (the odd pixel right and below), only right and below, or
/// on both sides but no more of it than the next multiple of the stride needs.
enum class Placement { centred, top_left, minimum_rectangle };

/// The colour of borders, each channel. Source: spec/data.md sections 3, 5, 6.
inline constexpr std::uint8_t border_colour = 114;

/// Letterbox of a picture into `target`. Source: spec/data.md section 6.
/// \param stride  used with minimum_rectangle only
/// \throws Error  a side is below 1
Letterbox letterbox(Size picture, Size target, ScaleUp scale_up,
                    Placement placement = Placement::centred, int stride = 32);

/// The geometry of a picture that was loaded at `loaded` and put by `placed`.
ImageGeometry image_geometry(Size original, Size loaded, Letterbox const& placed);

/// The geometry of a picture that was letterboxed into `network` directly, for pictures whose steps
/// are not known. Source: spec/postprocess.md section 3.
ImageGeometry guessed_geometry(Size original, Size network);

/// A box of the network input as a box of the original picture, clipped to it.
/// Source: spec/postprocess.md section 3.
Corners to_original(Corners const& box_px, ImageGeometry const& geometry);

/// The order and shapes of rectangular validation batches.
struct RectangularBatches {
  std::vector<std::uint32_t> order;  ///< positions in the data set, h / w ascending, ties as given
  std::vector<Size> shapes;          ///< of each batch of `batch` consecutive entries of `order`
};

struct RectangularSettings {
  int image_size = 640;  ///< pixels of the long side
  std::int64_t batch = 16;
  int stride = 32;
  double pad = 0.5;  ///< in strides; 0.5 in validation, 0 in training
};

/// Groups pictures of like shape. Source: spec/data.md section 12.
RectangularBatches rectangular_batches(std::span<Size const> pictures,
                                       RectangularSettings const& settings);

}  // namespace yolohpc::data
