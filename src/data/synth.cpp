#include "yolohpc/data/synth.hpp"

#include <cmath>
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>
#include <turbojpeg.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;
using base::ExitCode;
using Json = nlohmann::ordered_json;

constexpr int smallest_side_px = 64;
constexpr int largest_side_px = 4096;

struct CloseCompressor {
  void operator()(void* handle) const { tjDestroy(handle); }
};
struct FreeJpeg {
  void operator()(unsigned char* bytes) const { tjFree(bytes); }
};

void check(SynthSettings const& settings) {
  auto const within = [](char const* what, double value, double low, double high) {
    YOLOHPC_CHECK_AS(ExitCode::usage, value >= low && value <= high, what, " is ", value,
                     "; allowed: ", low, " to ", high, ".");
  };
  within("the number of training images", static_cast<double>(settings.train_images), 1, 1e8);
  within("the number of validation images", static_cast<double>(settings.val_images), 1, 1e8);
  within("the width in pixels", settings.width_px, smallest_side_px, largest_side_px);
  within("the height in pixels", settings.height_px, smallest_side_px, largest_side_px);
  within("the number of classes", settings.class_count, 1,
         static_cast<double>(synth_shapes.size()));
  within("the JPEG quality", settings.jpeg_quality, 1, 100);
  within("the share of empty pictures", settings.empty_share, 0, 1);
  within("the share of pictures with a crowd", settings.crowd_share, 0, 1);
}

// Everything that the bytes depend on. Stands in the annotation files, so that a set can be
// recognised.
std::string description_of(SynthSettings const& settings, std::int64_t image_count) {
  return base::join("drawn shapes by yolohpc-synth: ", image_count, " images of at most ",
                    settings.width_px, "x", settings.height_px, ", ", settings.class_count,
                    " classes, quality ", settings.jpeg_quality, ", seed ", settings.seed,
                    ", empty ", settings.empty_share, ", crowd ", settings.crowd_share);
}

Json annotation_of(SynthObject const& object, std::int64_t id, std::int64_t image_id) {
  return {{"id", id},
          {"image_id", image_id},
          {"category_id", object.class_index + 1},
          {"bbox", object.box_px},
          {"area", object.area_px},
          {"iscrowd", object.is_crowd ? 1 : 0}};
}

Json categories_of(int class_count) {
  Json categories = Json::array();
  for (int i = 0; i < class_count; ++i) {
    categories.push_back(Json{{"id", i + 1},
                              {"name", synth_shapes[static_cast<std::size_t>(i)]},
                              {"supercategory", "shape"}});
  }
  return categories;
}

struct SplitPlan {
  SynthSplit split;
  char const* name;
  std::int64_t image_count;
};

std::string file_name_of(std::int64_t image_id) {
  char name[32];
  std::snprintf(name, sizeof name, "%06lld.jpg", static_cast<long long>(image_id));
  return name;
}

fs::path annotation_file(fs::path const& out, SplitPlan const& plan) {
  return out / "annotations" / base::join("instances_", plan.name, ".json");
}

// Draws one split's pictures into files; the annotations come back as JSON.
Json write_pictures(fs::path const& folder, SynthSettings const& settings, SplitPlan const& plan,
                    std::function<void()> const& after_each) {
  fs::create_directories(folder);
  Json images = Json::array();
  Json annotations = Json::array();
  for (std::int64_t i = 0; i < plan.image_count; ++i) {
    auto const picture = draw_picture(settings, plan.split, static_cast<std::uint64_t>(i));
    auto const image_id = i + 1;
    auto const name = file_name_of(image_id);
    // One sync per picture would cost more than drawing it; the annotations are the proof of
    // completeness.
    auto const bytes = encode_jpeg(picture, settings.jpeg_quality);
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen((folder / name).c_str(), "wbe"),
                                                         std::fclose);
    bool const is_written =
        file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size() &&
        std::fclose(file.release()) == 0;
    YOLOHPC_CHECK(is_written, "cannot write ", (folder / name).string(), " (", bytes.size(),
                  " bytes). Check free space and permissions.");
    images.push_back(Json{{"id", image_id},
                          {"file_name", name},
                          {"width", picture.width_px},
                          {"height", picture.height_px}});
    for (auto const& object : picture.objects) {
      annotations.push_back(
          annotation_of(object, static_cast<std::int64_t>(annotations.size()) + 1, image_id));
    }
    after_each();
  }
  return {{"info", {{"description", description_of(settings, plan.image_count)}}},
          {"images", images},
          {"annotations", annotations},
          {"categories", categories_of(settings.class_count)}};
}

// The objects of a finished split with these settings; -1 when there is none.
std::int64_t objects_in_place(fs::path const& out, SynthSettings const& settings,
                              SplitPlan const& plan) {
  auto const file = annotation_file(out, plan);
  if (!fs::exists(file)) return -1;
  auto const json = Json::parse(base::read_text_file(file), nullptr, /*allow_exceptions=*/false);
  auto const wanted = description_of(settings, plan.image_count);
  std::string found = "nothing known";
  if (json.is_object() && json.contains("info") && json["info"].contains("description")) {
    found = json["info"]["description"].get<std::string>();
  }
  YOLOHPC_CHECK_AS(ExitCode::usage, found == wanted, file.string(), " holds another set (", found,
                   "; wanted: ", wanted, "). Choose another folder or remove it.");
  return static_cast<std::int64_t>(json["annotations"].size());
}

}  // namespace

std::vector<std::byte> encode_jpeg(SynthPicture const& picture, int quality) {
  std::unique_ptr<void, CloseCompressor> const handle(tjInitCompress());
  YOLOHPC_CHECK(handle != nullptr, "tjInitCompress: ", tjGetErrorStr2(nullptr), ".");
  unsigned char* raw = nullptr;
  unsigned long size_bytes = 0;
  int const status =
      tjCompress2(handle.get(), picture.rgb.data(), picture.width_px, 0, picture.height_px,
                  TJPF_RGB, &raw, &size_bytes, TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  std::unique_ptr<unsigned char, FreeJpeg> const owner(raw);
  YOLOHPC_CHECK(status == 0, "tjCompress2 (", picture.width_px, "x", picture.height_px,
                "): ", tjGetErrorStr2(handle.get()), ".");
  auto const* begin = reinterpret_cast<std::byte const*>(raw);
  return {begin, begin + size_bytes};
}

SynthReport write_synth_set(fs::path const& out, SynthSettings const& settings,
                            std::function<void(std::int64_t)> const& progress) {
  check(settings);
  SplitPlan const plans[] = {{SynthSplit::train, "train", settings.train_images},
                             {SynthSplit::val, "val", settings.val_images}};
  SynthReport report{.images = settings.train_images + settings.val_images};
  auto const train_objects = objects_in_place(out, settings, plans[0]);
  auto const val_objects = objects_in_place(out, settings, plans[1]);
  if (train_objects >= 0 && val_objects >= 0) {
    return {.images = report.images, .objects = train_objects + val_objects, .was_there = true};
  }
  std::int64_t done = 0;
  std::vector<Json> annotations;
  for (auto const& plan : plans) {
    annotations.push_back(write_pictures(out / "images" / plan.name, settings, plan, [&] {
      ++done;
      if (progress) progress(done);
    }));
    report.objects += static_cast<std::int64_t>(annotations.back()["annotations"].size());
  }
  fs::create_directories(out / "annotations");
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    base::write_file_atomically(annotation_file(out, plans[i]), annotations[i].dump() + '\n');
  }
  return report;
}

}  // namespace yolohpc::data
