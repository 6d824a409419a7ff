#include "yolohpc/data/augment.hpp"

#include <algorithm>
#include <cassert>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/philox.hpp"

namespace yolohpc::data {
namespace {

using base::Philox;
using base::Purpose;

void check_range(char const* name, double value, double low, double high) {
  YOLOHPC_CHECK_AS(base::ExitCode::usage, value >= low && value <= high, "--", name, " is ", value,
                   " (allowed: ", low, " to ", high, "). Choose a value in that range.");
}

/// Distinct numbers of 1..window while there are enough of them.
std::array<int, 3> draw_partners(int window, Philox& random) {
  std::array<int, 3> partners{};
  for (std::size_t i = 0; i < partners.size(); ++i) {
    auto const begin = partners.begin();
    auto const end = begin + static_cast<std::ptrdiff_t>(i);
    do {
      partners[i] = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(window)));
    } while (window >= 3 && std::find(begin, end, partners[i]) != end);
  }
  return partners;
}

std::optional<MosaicDraw> draw_mosaic(double probability, int image_size, int window,
                                      Philox& random) {
  if (!(random.uniform() < probability)) return std::nullopt;
  MosaicDraw draw;
  draw.centre_y = static_cast<int>(random.uniform(image_size / 2.0, 1.5 * image_size));
  draw.centre_x = static_cast<int>(random.uniform(image_size / 2.0, 1.5 * image_size));
  draw.steps_back = draw_partners(window, random);
  return draw;
}

AffineDraw draw_affine(AugmentSettings const& settings, Philox& random) {
  AffineDraw draw;
  draw.angle_deg = random.uniform(-settings.degrees, settings.degrees);
  draw.scale = random.uniform(1 - settings.scale, 1 + settings.scale);
  draw.shear_x_deg = random.uniform(-settings.shear, settings.shear);
  draw.shear_y_deg = random.uniform(-settings.shear, settings.shear);
  draw.centre_x = random.uniform(0.5 - settings.translate, 0.5 + settings.translate);
  draw.centre_y = random.uniform(0.5 - settings.translate, 0.5 + settings.translate);
  return draw;
}

/// Beta(32, 32): the 32nd smallest of 63 uniform numbers has that distribution (order statistics).
double draw_mixup_ratio(Philox& random) {
  constexpr std::size_t shape = 32;
  std::array<double, 2 * shape - 1> uniform{};
  for (double& value : uniform) value = random.uniform();
  auto const middle = uniform.begin() + (shape - 1);
  std::nth_element(uniform.begin(), middle, uniform.end());
  return *middle;
}

}  // namespace

void AugmentSettings::check() const {
  constexpr double right_angle = 90;
  check_range("hsv-h", hsv_h, 0, 1);
  check_range("hsv-s", hsv_s, 0, 1);
  check_range("hsv-v", hsv_v, 0, 1);
  check_range("degrees", degrees, 0, 2 * right_angle);
  check_range("translate", translate, 0, 1);
  // At 1 the smallest factor is 0 and the picture vanishes.
  check_range("scale", scale, 0, 0.99);
  check_range("shear", shear, 0, 0.5 * right_angle - 1);
  check_range("flipud", flipud, 0, 1);
  check_range("fliplr", fliplr, 0, 1);
  check_range("mosaic", mosaic, 0, 1);
  check_range("mixup", mixup, 0, 1);
}

AugmentDraw draw_augmentation(AugmentSettings const& settings, SampleKey const& key, int image_size,
                              int window, Combine combine) {
  auto const stream = [&](Purpose purpose) {
    return Philox(key.seed, key.epoch, key.position, purpose);
  };
  double const mosaic = combine == Combine::yes ? settings.mosaic : 0;
  AugmentDraw draw;
  auto placing = stream(Purpose::mosaic);
  draw.frame.mosaic = draw_mosaic(mosaic, image_size, window, placing);
  auto mapping = stream(Purpose::affine);
  draw.frame.affine = draw_affine(settings, mapping);
  auto mixing = stream(Purpose::mixup);
  if (combine == Combine::yes && mixing.uniform() < settings.mixup) {
    auto& mixup = draw.mixup.emplace();
    mixup.steps_back = 1 + static_cast<int>(mixing.below(static_cast<std::uint64_t>(window)));
    mixup.frame.mosaic = draw_mosaic(mosaic, image_size, window, mixing);
    mixup.frame.affine = draw_affine(settings, mixing);
    mixup.ratio = draw_mixup_ratio(mixing);
  }
  auto coloring = stream(Purpose::color);
  draw.color.hue = coloring.uniform(-1, 1) * settings.hsv_h;
  draw.color.saturation = coloring.uniform(-1, 1) * settings.hsv_s;
  draw.color.value = coloring.uniform(-1, 1) * settings.hsv_v;
  auto flipping = stream(Purpose::flip);
  draw.flip_y = flipping.uniform() < settings.flipud;
  draw.flip_x = flipping.uniform() < settings.fliplr;
  return draw;
}

namespace {

/// A frame ready to be sampled: its canvas under the map, and its boxes in output pixels.
struct Frame {
  std::unique_ptr<RowSampler> rows;
  std::vector<LabelledBox> boxes;
};

Frame make_frame(FrameDraw const& draw, FramePictures const& pictures, Size output,
                 AugmentDraw const& flips) {
  Canvas canvas;
  std::vector<LabelledBox> boxes;
  if (draw.mosaic) {
    assert(pictures.size() == 4);
    std::array<PixelView, 4> views;
    for (std::size_t i = 0; i < 4; ++i) views[i] = view_of(pictures[i]->image);
    canvas = mosaic_canvas(views, output.width, draw.mosaic->centre_x, draw.mosaic->centre_y);
    for (std::size_t i = 0; i < 4; ++i) {
      append_canvas_boxes(pictures[i]->boxes, canvas.tiles[i], canvas.size, boxes);
    }
  } else {
    canvas = single_canvas(view_of(pictures.front()->image));
    boxes = pictures.front()->boxes;
  }
  WarpSettings warp;
  warp.matrix = affine_matrix(draw.affine, canvas.size, output);
  warp.output = output;
  warp.flip_x = flips.flip_x;
  warp.flip_y = flips.flip_y;
  return {make_row_sampler(canvas, warp),
          mapped_boxes(boxes, warp.matrix, draw.affine.scale, output)};
}

/// first := trunc(ratio * first + (1 - ratio) * second), each of the three low bytes.
/// Source: spec/data.md section 0.
void mix_row(double ratio, std::vector<std::uint32_t> const& second,
             std::vector<std::uint32_t>& first) {
  auto const share = static_cast<float>(ratio);
  auto const rest = static_cast<float>(1 - ratio);
  for (std::size_t x = 0; x < first.size(); ++x) {
    std::uint32_t mixed = 0;
    for (unsigned shift = 0; shift < 24; shift += 8) {
      auto const a = static_cast<float>(first[x] >> shift & 255u);
      auto const b = static_cast<float>(second[x] >> shift & 255u);
      mixed |= static_cast<std::uint32_t>(share * a + rest * b) << shift;
    }
    first[x] = mixed;
  }
}

LabelledBox normalised(LabelledBox const& labelled, float side, AugmentDraw const& draw) {
  Corners box{labelled.box.x1 / side, labelled.box.y1 / side, labelled.box.x2 / side,
              labelled.box.y2 / side};
  if (draw.flip_x) box = {1 - box.x2, box.y1, 1 - box.x1, box.y2};
  if (draw.flip_y) box = {box.x1, 1 - box.y2, box.x2, 1 - box.y1};
  return {box, labelled.label};
}

}  // namespace

std::vector<LabelledBox> augment(AugmentDraw const& draw, FramePictures const& pictures,
                                 FramePictures const& mixed, int image_size, std::uint8_t* planes) {
  Size const output{image_size, image_size};
  Frame first = make_frame(draw.frame, pictures, output, draw);
  Frame second;
  if (draw.mixup) second = make_frame(draw.mixup->frame, mixed, output, draw);
  ColorJitter const jitter(draw.color);
  auto const side = static_cast<std::size_t>(image_size);
  std::size_t const plane = side * side;
  std::vector<std::uint32_t> row(side);
  std::vector<std::uint32_t> mixed_row(side);
  for (int y = 0; y < image_size; ++y) {
    first.rows->sample_row(y, row.data());
    if (draw.mixup) {
      second.rows->sample_row(y, mixed_row.data());
      mix_row(draw.mixup->ratio, mixed_row, row);
    }
    std::uint8_t* const red = planes + static_cast<std::size_t>(y) * side;
    jitter.apply_row(row.data(), image_size, red, red + plane, red + 2 * plane);
  }
  std::vector<LabelledBox> boxes = std::move(first.boxes);
  boxes.insert(boxes.end(), second.boxes.begin(), second.boxes.end());
  for (auto& box : boxes) box = normalised(box, static_cast<float>(image_size), draw);
  return boxes;
}

}  // namespace yolohpc::data
