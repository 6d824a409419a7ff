// Small packed sets for tests: a few pictures with labels, and readers of whatever a set holds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "yolohpc/data/packer.hpp"
#include "yolohpc/data/shard_set.hpp"

#include "data/picture_files.hpp"

namespace yolohpc::testing {

inline std::vector<data::Category> two_categories() {
  return {{3, "früh"}, {17, "late"}};
}

/// `count` pictures of different sizes, every third a JPEG, picture i with i % 3 boxes.
inline std::vector<data::PackImage> some_pictures(int count) {
  std::vector<data::PackImage> images;
  std::int64_t annotation = 100;
  for (int i = 0; i < count; ++i) {
    auto const picture = smooth_picture(20 + i, 16 + 2 * i, static_cast<std::uint64_t>(i));
    data::PackImage image{.id = 1000 - i,
                          .file_name = "d/picture " + std::to_string(i),
                          .bytes = i % 3 == 2 ? jpeg_bytes(picture) : png_bytes(picture),
                          .annotations = {}};
    for (int k = 0; k < i % 3; ++k) {
      image.annotations.push_back({.id = annotation++,
                                   .xywh_px = {1.25 + k, 2.5, 7.0 + 0.1 * i, 8.0},
                                   .area = 50.5 + i,
                                   .class_index = k,
                                   .is_crowd = i == 5 && k == 1});
    }
    images.push_back(std::move(image));
  }
  return images;
}

inline data::PackSettings pack_settings(std::filesystem::path const& folder,
                                        std::int64_t shard_bytes = std::int64_t{1} << 20) {
  data::PackSettings settings;
  settings.out = folder;
  settings.shard_bytes = shard_bytes;
  return settings;
}

/// Everything a reader can see of a set, as text: two sets with equal text are the same to any
/// user.
inline std::string contents_of(data::ShardSet const& set) {
  std::ostringstream text;
  text.precision(17);
  text << set.split() << ' ' << set.digest() << ' ' << set.size() << '\n';
  for (auto const& category : set.categories()) text << category.id << category.name << '\n';
  for (std::int64_t i = 0; i < set.size(); ++i) {
    auto const record = set.record(i);
    text << record.image_id << ' ' << record.file_name << ' ' << record.width_px << ' '
         << record.height_px << ' ' << data::name_of(record.format) << ' ' << record.orientation;
    for (auto const& a : set.annotations(i)) {
      text << " [" << a.id << ' ' << a.class_index << ' ' << a.area << ' ' << a.is_crowd;
      for (double const value : a.xywh_px) text << ' ' << value;
      text << ']';
    }
    for (std::byte const byte : set.read_bytes(i)) text << std::to_integer<int>(byte) << ',';
    text << '\n';
  }
  return text.str();
}

}  // namespace yolohpc::testing
