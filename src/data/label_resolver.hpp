// LabelResolver: joins images, annotations and categories by their ids and finds what does not fit.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "yolohpc/data/label_source.hpp"

namespace yolohpc::data {

/// Takes the entries of a source in any order; finish() joins them.
class LabelResolver {
 public:
  struct RawAnnotation {
    std::int64_t id = 0;
    std::int64_t image_id = 0;
    std::int64_t category_id = 0;
    std::array<double, 4> bbox{};
    double area = 0;  ///< NaN: not given
    bool is_crowd = false;
    std::string fault = {};  ///< why the box is unusable; empty when it is fine
  };

  /// \param origin  the source's name, for messages
  explicit LabelResolver(std::string origin) : origin_(std::move(origin)) {}

  void add_image(SourceImage image) { images_.push_back(std::move(image)); }
  void add_annotation(RawAnnotation annotation) { annotations_.push_back(std::move(annotation)); }
  void add_category(Category category) { categories_.push_back(std::move(category)); }

  /// \throws Error (bad data)  no images, no categories, a category id twice
  LabelSource finish() &&;

 private:
  void sort_categories();
  void find_duplicate_images(LabelSource& source) const;
  void count_duplicate_annotation_ids(LabelSource& source) const;
  std::vector<std::size_t> places_of_annotations(LabelSource& source) const;
  void group_annotations(std::vector<std::size_t> const& places, LabelSource& source) const;

  std::string origin_;
  std::vector<SourceImage> images_;
  std::vector<RawAnnotation> annotations_;
  std::vector<Category> categories_;
};

}  // namespace yolohpc::data
