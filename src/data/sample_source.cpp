#include "yolohpc/data/sample_source.hpp"

#include <string>

#include "yolohpc/base/error.hpp"

namespace yolohpc::data {
namespace {

class ShardSource final : public SampleSource {
 public:
  explicit ShardSource(ShardSet const& shards) : shards_(shards) {}

  std::int64_t size() const override { return shards_.size(); }
  std::int64_t image_id(std::uint32_t sample) const override {
    return shards_.record(sample).image_id;
  }
  Size picture_size(std::uint32_t sample) const override {
    auto const record = shards_.record(sample);
    return {record.height_px, record.width_px};
  }

  std::vector<LabelledBox> boxes(std::uint32_t sample) const override {
    std::vector<LabelledBox> boxes;
    for (auto const& [xyxy_px, label] : shards_.training_boxes(sample)) {
      Corners const box{static_cast<float>(xyxy_px[0]), static_cast<float>(xyxy_px[1]),
                        static_cast<float>(xyxy_px[2]), static_cast<float>(xyxy_px[3])};
      boxes.push_back({box, label});
    }
    return boxes;
  }

  void load(std::uint32_t sample, LoadScratch& scratch) const override {
    shards_.read_bytes_into(sample, scratch.bytes);
    auto const record = shards_.record(sample);
    try {
      scratch.decoder.decode(scratch.bytes, record.orientation, scratch.picture);
    } catch (ImageFault const& fault) {
      base::fail(base::ExitCode::bad_data, place_of(record), " is ", fault.what(),
                 ". Pack the data set again.");
    }
    auto const& picture = scratch.picture;
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data,
                     picture.width == record.width_px && picture.height == record.height_px,
                     place_of(record), " decodes to ", picture.width, " x ", picture.height,
                     " pixels, its table says ", record.width_px, " x ", record.height_px,
                     ". Pack the data set again.");
  }

 private:
  std::string place_of(Record const& record) const {
    return base::join("shard ", record.shard, " of ", shards_.shard_count(), ", record ",
                      record.index_in_shard, " (image id ", record.image_id, ", ", record.file_name,
                      ")");
  }

  ShardSet const& shards_;
};

}  // namespace

std::unique_ptr<SampleSource> make_shard_source(ShardSet const& shards) {
  return std::make_unique<ShardSource>(shards);
}

}  // namespace yolohpc::data
