#include "label_resolver.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "yolohpc/base/error.hpp"

namespace yolohpc::data {
namespace {

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

std::unordered_map<std::int64_t, std::size_t> places_of_images(
    std::vector<SourceImage> const& images) {
  std::unordered_map<std::int64_t, std::size_t> places;
  places.reserve(images.size());
  for (std::size_t i = 0; i < images.size(); ++i) places.emplace(images[i].id, i);
  return places;
}

/// Place of a category id among the ascending ids.
std::optional<std::int32_t> class_of(std::vector<Category> const& categories, std::int64_t id) {
  auto const found = std::lower_bound(
      categories.begin(), categories.end(), id,
      [](Category const& category, std::int64_t wanted) { return category.id < wanted; });
  if (found == categories.end() || found->id != id) return std::nullopt;
  return static_cast<std::int32_t>(found - categories.begin());
}

PackFault annotation_fault(char const* kind, LabelResolver::RawAnnotation const& annotation,
                           std::string reason) {
  return {.kind = kind,
          .file = {},
          .image_id = std::nullopt,
          .annotation_id = annotation.id,
          .reason = std::move(reason)};
}

}  // namespace

void LabelResolver::sort_categories() {
  std::sort(categories_.begin(), categories_.end(),
            [](Category const& a, Category const& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < categories_.size(); ++i) {
    YOLOHPC_CHECK_AS(base::ExitCode::bad_data, categories_[i - 1].id != categories_[i].id, origin_,
                     ": duplicate category id ", categories_[i].id, " (\"", categories_[i - 1].name,
                     "\" and \"", categories_[i].name, "\"). Give each category its own id.");
  }
}

void LabelResolver::find_duplicate_images(LabelSource& source) const {
  std::unordered_map<std::int64_t, int> uses;
  for (SourceImage const& image : source.images) ++uses[image.id];
  for (SourceImage& image : source.images) {
    int const count = uses[image.id];
    if (count == 1) continue;
    // Whose labels they are cannot be told, so none of them is packed.
    image.excluded = true;
    source.faults.push_back(
        {.kind = "duplicate_image_id",
         .file = image.file_name,
         .image_id = image.id,
         .annotation_id = std::nullopt,
         .reason = base::join("duplicate image id ", image.id, " (", count, " images have it)")});
  }
}

void LabelResolver::count_duplicate_annotation_ids(LabelSource& source) const {
  std::vector<std::int64_t> ids;
  ids.reserve(annotations_.size());
  for (RawAnnotation const& annotation : annotations_) ids.push_back(annotation.id);
  std::sort(ids.begin(), ids.end());
  std::int64_t repeated = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) repeated += ids[i] == ids[i - 1] ? 1 : 0;
  if (repeated > 0) source.converted["duplicate_annotation_id"] = repeated;
}

/// Place in the source's images of each annotation, `nowhere` for those with a fault, which is
/// recorded.
std::vector<std::size_t> LabelResolver::places_of_annotations(LabelSource& source) const {
  auto const places = places_of_images(source.images);
  std::vector<std::size_t> result(annotations_.size(), nowhere);
  for (std::size_t i = 0; i < annotations_.size(); ++i) {
    RawAnnotation const& raw = annotations_[i];
    auto const place = places.find(raw.image_id);
    if (place == places.end()) {
      source.faults.push_back(annotation_fault("annotation_unknown_image", raw,
                                               base::join("annotation ", raw.id, " names image id ",
                                                          raw.image_id, ", which is not listed")));
    } else if (!class_of(source.categories, raw.category_id)) {
      source.faults.push_back(
          annotation_fault("annotation_unknown_category", raw,
                           base::join("annotation ", raw.id, " names category_id ", raw.category_id,
                                      ", which is not listed")));
    } else if (!raw.fault.empty()) {
      source.faults.push_back(annotation_fault("annotation_bad_box", raw,
                                               base::join("annotation ", raw.id, ": ", raw.fault)));
    } else {
      result[i] = place->second;
    }
  }
  return result;
}

/// Counting sort by image, which keeps the source's order inside each.
void LabelResolver::group_annotations(std::vector<std::size_t> const& places,
                                      LabelSource& source) const {
  source.first_annotation.assign(source.images.size() + 1, 0);
  for (std::size_t const place : places) {
    if (place != nowhere) ++source.first_annotation[place + 1];
  }
  std::partial_sum(source.first_annotation.begin(), source.first_annotation.end(),
                   source.first_annotation.begin());
  source.annotations.resize(source.first_annotation.back());
  std::vector<std::uint64_t> next(source.first_annotation.begin(),
                                  source.first_annotation.end() - 1);
  for (std::size_t i = 0; i < annotations_.size(); ++i) {
    if (places[i] == nowhere) continue;
    RawAnnotation const& raw = annotations_[i];
    bool const has_area = std::isfinite(raw.area);
    if (!has_area) ++source.converted["area_missing"];
    source.annotations[next[places[i]]++] = {
        .id = raw.id,
        .xywh_px = raw.bbox,
        .area = has_area ? raw.area : raw.bbox[2] * raw.bbox[3],
        .class_index = *class_of(source.categories, raw.category_id),
        .is_crowd = raw.is_crowd};
  }
}

LabelSource LabelResolver::finish() && {
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, !images_.empty(), origin_,
                   ": no images (the list is empty).");
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, !categories_.empty(), origin_,
                   ": no categories (the list is empty).");
  sort_categories();
  LabelSource source;
  source.categories = std::move(categories_);
  source.images = std::move(images_);
  find_duplicate_images(source);
  count_duplicate_annotation_ids(source);
  group_annotations(places_of_annotations(source), source);
  return source;
}

}  // namespace yolohpc::data
