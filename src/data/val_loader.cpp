#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "yolohpc/base/error.hpp"
#include "yolohpc/data/letterbox.hpp"
#include "yolohpc/data/loader.hpp"
#include "yolohpc/data/resize.hpp"

namespace yolohpc::data {

class ValLoader::Maker final : public BatchMaker {
 public:
  Maker(SampleSource const& source, ValLoaderSettings const& settings)
      : source_(source), settings_(settings) {
    YOLOHPC_CHECK_AS(base::ExitCode::usage, settings.batch >= 1, "the validation batch is ",
                     settings.batch, " (at least 1 is needed). Use a larger --batch.");
    if (settings.framing == Framing::square) {
      plan_square();
    } else {
      plan_rectangular();
    }
  }

  std::int64_t images() const { return static_cast<std::int64_t>(samples_.size()); }
  std::int64_t batches() const { return static_cast<std::int64_t>(sizes_.size()); }
  BadRecordList& bad_records() { return bad_records_; }

  std::optional<BatchShape> shape(std::int64_t batch) override {
    if (batch >= batches()) return std::nullopt;
    return BatchShape{std::min(settings_.batch, images() - batch * settings_.batch),
                      sizes_[static_cast<std::size_t>(batch)]};
  }

  MadeSample make(std::int64_t batch, std::int64_t slot, std::uint8_t* planes,
                  WorkerScratch& scratch) override {
    auto const sample = samples_[static_cast<std::size_t>(batch * settings_.batch + slot)];
    Size const target = sizes_[static_cast<std::size_t>(batch)];
    Size const original = source_.picture_size(sample);
    Size const loaded = loaded_size(original, settings_.image_size);
    auto const placed = letterbox(loaded, target, ScaleUp::no);
    MadeSample made;
    made.sample = sample;
    made.image_id = source_.image_id(sample);
    made.geometry = image_geometry(original, loaded, placed);
    made.replaced = !load(sample, scratch);
    if (made.replaced) {
      std::memset(
          planes, border_colour,
          static_cast<std::size_t>(target.height) * static_cast<std::size_t>(target.width) * 3);
      return made;
    }
    resize_bilinear(view_of(scratch.load.picture), loaded, scratch.resized);
    write_letterbox(view_of(scratch.resized), placed, planes, scratch.letterboxed);
    made.boxes = source_.boxes(sample);
    for (auto& [box, label] : made.boxes) box = normalised(box, made.geometry, target);
    return made;
  }

  void handed_out(std::int64_t) override {}

 private:
  void plan_square() {
    auto const share = contiguous_share(source_.size(), settings_.rank, settings_.size);
    samples_.resize(static_cast<std::size_t>(share.count));
    std::iota(samples_.begin(), samples_.end(), static_cast<std::uint32_t>(share.first));
    auto const batches = (share.count + settings_.batch - 1) / settings_.batch;
    sizes_.assign(static_cast<std::size_t>(batches), {settings_.image_size, settings_.image_size});
  }

  void plan_rectangular() {
    std::vector<Size> pictures;
    for (std::int64_t i = 0; i < source_.size(); ++i) {
      pictures.push_back(source_.picture_size(static_cast<std::uint32_t>(i)));
    }
    RectangularSettings rectangles;
    rectangles.image_size = settings_.image_size;
    rectangles.batch = settings_.batch;
    auto const all = rectangular_batches(pictures, rectangles);
    auto const count = static_cast<std::int64_t>(all.shapes.size());
    auto const share = contiguous_share(count, settings_.rank, settings_.size);
    sizes_.assign(all.shapes.begin() + share.first, all.shapes.begin() + share.first + share.count);
    auto const first = std::min(share.first * settings_.batch, source_.size());
    auto const last = std::min((share.first + share.count) * settings_.batch, source_.size());
    samples_.assign(all.order.begin() + first, all.order.begin() + last);
  }

  bool load(std::uint32_t sample, WorkerScratch& scratch) {
    try {
      source_.load(sample, scratch.load);
    } catch (base::Error const& error) {
      if (settings_.on_bad_sample == OnBadSample::fail) throw;
      bad_records_.add({sample, source_.image_id(sample), error.what()});
      return false;
    }
    return true;
  }

  static Corners normalised(Corners const& box, ImageGeometry const& geometry, Size target) {
    auto const x = [&](float value) {
      return static_cast<float>((value * geometry.gain_x + geometry.pad_x) / target.width);
    };
    auto const y = [&](float value) {
      return static_cast<float>((value * geometry.gain_y + geometry.pad_y) / target.height);
    };
    return {x(box.x1), y(box.y1), x(box.x2), y(box.y2)};
  }

  SampleSource const& source_;
  ValLoaderSettings settings_;
  BadRecordList bad_records_;
  std::vector<std::uint32_t> samples_;  ///< of this rank, in order
  std::vector<Size> sizes_;             ///< network input of each batch
};

ValLoader::ValLoader(SampleSource const& source, ValLoaderSettings const& settings)
    : maker_(std::make_unique<Maker>(source, settings)),
      pipeline_(std::make_unique<BatchPipeline>(*maker_, settings.pipeline)) {}

ValLoader::~ValLoader() = default;

std::optional<Batch> ValLoader::next() {
  return pipeline_->next();
}
std::int64_t ValLoader::images() const {
  return maker_->images();
}
std::int64_t ValLoader::batches() const {
  return maker_->batches();
}
std::vector<BadRecord> ValLoader::take_bad_records() {
  return maker_->bad_records().take();
}
double ValLoader::data_wait_s() const {
  return pipeline_->wait_s();
}

}  // namespace yolohpc::data
