// DrawnSource: a data set of drawn pictures in memory, some of which cannot be read.
#pragma once

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/philox.hpp"
#include "yolohpc/data/sample_source.hpp"

#include "picture_support.hpp"

namespace yolohpc::testing {

/// Picture i has a noisy ground of its own, a coloured rectangle, its box, and image id 1000 + i.
/// Sizes differ from picture to picture; every fifth picture has no boxes.
class DrawnSource final : public data::SampleSource {
 public:
  explicit DrawnSource(std::int64_t count, std::set<std::uint32_t> bad = {})
      : count_(count), bad_(std::move(bad)) {}

  std::int64_t size() const override { return count_; }
  std::int64_t image_id(std::uint32_t sample) const override { return 1000 + sample; }
  data::Size picture_size(std::uint32_t sample) const override {
    return {40 + static_cast<int>(sample * 7 % 50), 41 + static_cast<int>(sample * 13 % 60)};
  }
  std::vector<data::LabelledBox> boxes(std::uint32_t sample) const override {
    if (sample % 5 == 4) return {};
    return {{{8, 10, 30, 36}, sample % 3}};
  }
  void load(std::uint32_t sample, data::LoadScratch& scratch) const override {
    ++loads_;
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, bad_.count(sample) == 0, "record ", sample,
                     " has checksum 1, expected 2");
    auto const size = picture_size(sample);
    scratch.picture = plain_picture(size.width, size.height, 0, 0, 0);
    base::Philox random(0, 0, sample, base::Purpose::test);
    for (auto& byte : scratch.picture.rgb) byte = static_cast<std::uint8_t>(random.next() % 64);
    fill_rectangle(scratch.picture, 8, 10, 30, 36, 250, 120, 40);
  }

  /// Calls of load so far.
  int loads() const { return loads_; }

 private:
  std::int64_t count_;
  std::set<std::uint32_t> bad_;
  mutable std::atomic<int> loads_{0};
};

}  // namespace yolohpc::testing
