// RowSampler: the warp of a canvas, with a separable path for scale and shift.
#include <algorithm>
#include <cmath>

#include "yolohpc/base/error.hpp"
#include "yolohpc/data/affine.hpp"
#include "yolohpc/data/resize.hpp"

namespace yolohpc::data {
namespace {

/// Where an output position reads along one axis of a canvas of `size` pixels; positions outside
/// are moved to -1 or `size`, whose two taps both lie outside.
Tap canvas_tap(double position, int size) {
  if (!(position > -1)) return {-1, 0};
  if (position >= size) return {size, 0};
  // Positions are above -1 here, so this is the floor without a call into the maths library.
  int const first = static_cast<int>(position + 1) - 1;
  return {first, static_cast<float>(position - first)};
}

/// The maps from output positions (before a flip) to canvas positions, in double.
struct Inverse {
  double xx, xy, x0, yx, yy, y0;
};

Inverse inverse_of(Matrix const& m) {
  double const determinant = static_cast<double>(m[0]) * m[4] - static_cast<double>(m[1]) * m[3];
  YOLOHPC_CHECK(std::isfinite(1 / determinant), "the affine matrix has determinant ", determinant,
                " (a picture cannot be mapped to a line); use a smaller scale range");
  Inverse inverse{};
  inverse.xx = m[4] / determinant;
  inverse.xy = -m[1] / determinant;
  inverse.yx = -m[3] / determinant;
  inverse.yy = m[0] / determinant;
  inverse.x0 = -(inverse.xx * m[2] + inverse.xy * m[5]);
  inverse.y0 = -(inverse.yx * m[2] + inverse.yy * m[5]);
  return inverse;
}

/// Scale and shift only: rows are blended first (cheap, contiguous), then columns.
class SeparableSampler final : public RowSampler {
 public:
  SeparableSampler(Canvas const& canvas, WarpSettings const& settings)
      : canvas_(canvas), inverse_(inverse_of(settings.matrix)), settings_(settings) {
    int const width = canvas.size.width;
    // One pixel to the left of the canvas, two to the right, and what a load of four reads beyond.
    blended_.assign(static_cast<std::size_t>(width + 4) * 3, static_cast<float>(border_colour));
    border_.assign(static_cast<std::size_t>(width) * 3, border_colour);
    first_column_ = width;
    for (int x = 0; x < settings.output.width; ++x) {
      int const unflipped = settings.flip_x ? settings.output.width - 1 - x : x;
      Tap const tap = canvas_tap(inverse_.xx * unflipped + inverse_.x0, width);
      offsets_.push_back(3 * (tap.first + 1));
      weights_.push_back(tap.weight);
      first_column_ = std::min(first_column_, tap.first);
      last_column_ = std::max(last_column_, tap.first + 1);
    }
    first_column_ = std::max(first_column_, 0);
    last_column_ = std::min(last_column_, width - 1);
  }

  void sample_row(int y, std::uint32_t* out) override {
    int const unflipped = settings_.flip_y ? settings_.output.height - 1 - y : y;
    Tap const tap = canvas_tap(inverse_.yy * unflipped + inverse_.y0, canvas_.size.height);
    blend_half(0, tap, first_column_, std::min(canvas_.split_x, last_column_ + 1));
    blend_half(1, tap, std::max(canvas_.split_x, first_column_), last_column_ + 1);
    interpolate_columns(blended_.data(), offsets_.data(), weights_.data(), settings_.output.width,
                        out);
  }

 private:
  /// A canvas row within one half: covered from left to right-1, where the pixel of column x is at
  /// first + 3 * x.
  struct RowPiece {
    int left = 0;
    int right = 0;
    std::uint8_t const* row = nullptr;
    int origin = 0;
  };

  RowPiece row_piece(int half, int y) const {
    auto const& tile =
        canvas_.tiles[static_cast<std::size_t>((y >= canvas_.split_y ? 2 : 0) + half)];
    if (y < tile.top || y >= tile.bottom) return {};
    return {tile.left, tile.right, tile.pixels.row(y - tile.origin_y), tile.origin_x};
  }

  std::uint8_t const* pixels_at(RowPiece const& piece, int x) const {
    if (x < piece.left || x >= piece.right) return border_.data();
    return piece.row + 3 * (x - piece.origin);
  }

  /// Blends the two canvas rows of `tap` on columns begin..end-1 of one half of the canvas.
  void blend_half(int half, Tap const& tap, int begin, int end) {
    if (begin >= end) return;
    RowPiece const upper = row_piece(half, tap.first);
    RowPiece const lower = row_piece(half, tap.first + 1);
    std::array<int, 6> cuts{begin, upper.left, upper.right, lower.left, lower.right, end};
    for (int& cut : cuts) cut = std::clamp(cut, begin, end);
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      int const x = cuts[i];
      int const count = cuts[i + 1] - x;
      if (count == 0) continue;
      blend_rows(pixels_at(upper, x), pixels_at(lower, x), tap.weight, 3 * count,
                 blended_.data() + 3 * (x + 1));
    }
  }

  Canvas canvas_;
  Inverse inverse_;
  WarpSettings settings_;
  std::vector<float> blended_;  ///< one canvas row, column -1 first
  std::vector<std::uint8_t> border_;
  std::vector<std::int32_t> offsets_;
  std::vector<float> weights_;
  int first_column_ = 0;
  int last_column_ = -1;
};

/// Any affine matrix, pixel by pixel.
class MatrixSampler final : public RowSampler {
 public:
  MatrixSampler(Canvas const& canvas, WarpSettings const& settings)
      : canvas_(canvas), inverse_(inverse_of(settings.matrix)), settings_(settings) {}

  void sample_row(int y, std::uint32_t* out) override {
    int const from_y = settings_.flip_y ? settings_.output.height - 1 - y : y;
    for (int x = 0; x < settings_.output.width; ++x) {
      int const from_x = settings_.flip_x ? settings_.output.width - 1 - x : x;
      out[x] = sample(inverse_.xx * from_x + inverse_.xy * from_y + inverse_.x0,
                      inverse_.yx * from_x + inverse_.yy * from_y + inverse_.y0);
    }
  }

 private:
  Tile const& tile_at(int x, int y) const {
    int const quarter = (y >= canvas_.split_y ? 2 : 0) + (x >= canvas_.split_x ? 1 : 0);
    return canvas_.tiles[static_cast<std::size_t>(quarter)];
  }

  std::uint8_t const* pixel_at(int x, int y) const {
    static constexpr std::uint8_t border[3] = {border_colour, border_colour, border_colour};
    auto const& tile = tile_at(x, y);
    if (x < tile.left || x >= tile.right || y < tile.top || y >= tile.bottom) return border;
    return tile.pixels.row(y - tile.origin_y) + 3 * (x - tile.origin_x);
  }

  std::uint32_t sample(double x, double y) const {
    Tap const across = canvas_tap(x, canvas_.size.width);
    Tap const down = canvas_tap(y, canvas_.size.height);
    int const column = across.first;
    int const row = down.first;
    auto const& tile = tile_at(column, row);
    bool const is_inside =
        column >= tile.left && column + 1 < tile.right && row >= tile.top && row + 1 < tile.bottom;
    if (is_inside) {
      auto const* const upper = tile.pixels.row(row - tile.origin_y) + 3 * (column - tile.origin_x);
      auto const* const lower = upper + 3 * tile.pixels.size.width;
      return interpolate(upper, upper + 3, lower, lower + 3, across.weight, down.weight);
    }
    return interpolate(pixel_at(column, row), pixel_at(column + 1, row), pixel_at(column, row + 1),
                       pixel_at(column + 1, row + 1), across.weight, down.weight);
  }

  /// Four neighbours a b over c d. Down first, then across, like the separable path.
  static std::uint32_t interpolate(std::uint8_t const* a, std::uint8_t const* b,
                                   std::uint8_t const* c, std::uint8_t const* d, float across,
                                   float down) {
    std::uint32_t packed = 0;
    for (int channel = 0; channel < 3; ++channel) {
      float const left = blend(a[channel], c[channel], down);
      float const right = blend(b[channel], d[channel], down);
      float const value = left + (right - left) * across + 0.5f;
      // By way of a signed number: the conversion to an unsigned one is slower.
      packed |= static_cast<std::uint32_t>(static_cast<std::int32_t>(value)) << (8 * channel);
    }
    return packed;
  }

  static float blend(std::uint8_t first, std::uint8_t second, float weight) {
    auto const start = static_cast<float>(first);
    return start + (static_cast<float>(second) - start) * weight;
  }

  Canvas canvas_;
  Inverse inverse_;
  WarpSettings settings_;
};

}  // namespace

std::unique_ptr<RowSampler> make_row_sampler(Canvas const& canvas, WarpSettings const& settings) {
  if (settings.matrix[1] == 0 && settings.matrix[3] == 0) {
    return std::make_unique<SeparableSampler>(canvas, settings);
  }
  return std::make_unique<MatrixSampler>(canvas, settings);
}

}  // namespace yolohpc::data
