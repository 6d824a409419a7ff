// Drawn data sets: pictures of shapes on textured backgrounds with exact boxes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace yolohpc::data {

/// The shapes that can be drawn, in the order of their category ids (from 1): those that are easy
/// to tell apart come first.
inline constexpr std::array<std::string_view, 8> synth_shapes = {
    "disc", "cross", "triangle", "ring", "star", "square", "crescent", "hexagon"};

struct SynthSettings {
  std::int64_t train_images = 400;
  std::int64_t val_images = 100;
  int width_px = 320;  ///< largest; pictures vary between 3/4 of it and all of it
  int height_px = 320;
  int class_count = 6;  ///< the first ones of synth_shapes
  int jpeg_quality = 90;
  std::uint64_t seed = 0;
  double empty_share = 0.05;  ///< of the pictures have no object
  double crowd_share = 0.03;  ///< of the pictures have a crowd region
};

/// One drawn object.
struct SynthObject {
  int class_index = 0;
  std::array<int, 4>
      box_px{};              ///< x y w h of the pixels that were drawn, before others covered them
  std::int64_t area_px = 0;  ///< how many pixels that is
  bool is_crowd = false;     ///< a region of many small ones, drawn as a whole
};

struct SynthPicture {
  int width_px = 0;
  int height_px = 0;
  std::vector<std::uint8_t> rgb;  ///< (H, W, 3)
  std::vector<SynthObject> objects;
};

enum class SynthSplit { train, val };

/// Draws picture `number` (from 0) of a split. A function of its arguments alone: every picture has
/// its own random stream.
SynthPicture draw_picture(SynthSettings const& settings, SynthSplit split, std::uint64_t number);

/// Encodes as baseline JPEG, 4:2:0. \throws Error  libjpeg-turbo's own text
std::vector<std::byte> encode_jpeg(SynthPicture const& picture, int quality);

/// What write_synth_set() made.
struct SynthReport {
  std::int64_t images = 0;
  std::int64_t objects = 0;  ///< crowd regions among them
  bool was_there = false;    ///< the set stood there already, made with the same settings
};

/// Writes OUT/images/{train,val}/NNNNNN.jpg and OUT/annotations/instances_{train,val}.json.
///
/// Same settings, same bytes; the pictures of a split do not depend on how many there are. The
/// annotation files are written last, so that an interrupted run leaves none. A set that was made
/// with the same settings stays. \param progress  called after each picture with the count so far;
/// may be empty \throws Error (usage)  settings out of range, or OUT holds a set made with other
/// settings \throws Error          a file cannot be written
SynthReport write_synth_set(std::filesystem::path const& out, SynthSettings const& settings,
                            std::function<void(std::int64_t)> const& progress = {});

}  // namespace yolohpc::data
