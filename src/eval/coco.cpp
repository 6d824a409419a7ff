#include "yolohpc/eval/coco.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

#include <ATen/Parallel.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/eval/matches.hpp"

#include "sorted_ids.hpp"

namespace yolohpc::eval {
namespace {

// Images that one task matches before it hands its part over.
constexpr std::int64_t images_per_task = 64;

std::vector<std::int64_t> ids_of(std::vector<CocoCategory> const& categories) {
  std::vector<std::int64_t> ids;
  for (auto const& category : categories) ids.push_back(category.id);
  return ids;
}

constexpr std::size_t unlisted = static_cast<std::size_t>(-1);

/// Items grouped by image, in each group as given. Items of unlisted images are left out.
template <typename Item>
class ByImage {
 public:
  ByImage(std::span<Item const> items, std::vector<std::int64_t> const& image_ids)
      : items_(items), begin_(image_ids.size() + 1, 0) {
    std::vector<std::size_t> image(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      auto const id = items[i].image_id;
      auto const found = std::lower_bound(image_ids.begin(), image_ids.end(), id);
      bool const is_listed = found != image_ids.end() && *found == id;
      image[i] = is_listed ? static_cast<std::size_t>(found - image_ids.begin()) : unlisted;
      if (is_listed) ++begin_[image[i] + 1];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    order_.resize(begin_.back());
    auto place = begin_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (image[i] != unlisted) order_[place[image[i]]++] = i;
    }
  }

  std::vector<Item> of_image(std::size_t image) const {
    std::vector<Item> result;
    result.reserve(begin_[image + 1] - begin_[image]);
    for (auto i = begin_[image]; i < begin_[image + 1]; ++i) result.push_back(items_[order_[i]]);
    return result;
  }

 private:
  std::span<Item const> items_;
  std::vector<std::size_t> begin_;  // of each image in order_
  std::vector<std::size_t> order_;  // positions in items_
};

void check_images(std::span<CocoDetection const> detections,
                  std::vector<std::int64_t> const& image_ids) {
  for (std::size_t i = 0; i < detections.size(); ++i) {
    auto const id = detections[i].image_id;
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data,
                     std::binary_search(image_ids.begin(), image_ids.end(), id), "detection ", i,
                     " (counted from 0) is of image ", id,
                     ", which is not among the images of the ground truth. Remove it, or evaluate"
                     " against the annotations of the split that was predicted.");
  }
}

}  // namespace

std::array<double, iou_threshold_count> const& iou_thresholds() {
  static auto const values = [] {
    std::array<double, iou_threshold_count> result{};
    double const step = (0.95 - 0.5) / (iou_threshold_count - 1);
    for (int i = 0; i < iou_threshold_count; ++i) result[i] = 0.5 + i * step;
    result.back() = 0.95;
    return result;
  }();
  return values;
}

std::array<double, recall_point_count> const& recall_points() {
  static auto const values = [] {
    std::array<double, recall_point_count> result{};
    for (int i = 0; i < recall_point_count; ++i) result[i] = i * 0.01;
    result.back() = 1;
    return result;
  }();
  return values;
}

double coco_iou(CocoDetection const& detection, CocoObject const& object) {
  auto const& d = detection.box;
  auto const& g = object.box;
  double const width = std::min(d[0] + d[2], g[0] + g[2]) - std::max(d[0], g[0]);
  if (width <= 0) return 0;
  double const height = std::min(d[1] + d[3], g[1] + g[3]) - std::max(d[1], g[1]);
  if (height <= 0) return 0;
  double const inter = width * height;
  double const own_area = d[2] * d[3];
  return inter / (object.is_crowd ? own_area : own_area + g[2] * g[3] - inter);
}

CocoResults evaluate(CocoDataset const& dataset, std::span<CocoDetection const> detections,
                     CocoSettings const& settings) {
  auto const image_ids = sorted_ids(dataset.image_ids);
  check_images(detections, image_ids);
  ByImage<CocoObject> const objects_by_image(dataset.objects, image_ids);
  ByImage<CocoDetection> const detections_by_image(detections, image_ids);
  auto const categories = ids_of(dataset.categories);
  Matches all(categories, settings);
  std::mutex mutex;
  at::parallel_for(0, static_cast<std::int64_t>(image_ids.size()), images_per_task,
                   [&](std::int64_t begin, std::int64_t end) {
                     Matches part(categories, settings);
                     for (auto i = begin; i < end; ++i) {
                       auto const objects = objects_by_image.of_image(i);
                       auto const of_image = detections_by_image.of_image(i);
                       part.add_image({image_ids[i], objects, of_image});
                     }
                     std::lock_guard const lock(mutex);
                     all.merge(part);
                   });
  return all.results(image_ids);
}

}  // namespace yolohpc::eval
