#include "yolohpc/eval/coco_files.hpp"

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"
#include "yolohpc/eval/summary.hpp"

#include "support/golden.hpp"

namespace yolohpc::eval {
namespace {

class CocoFiles : public ::testing::Test {
 protected:
  std::filesystem::path write(std::string const& text) {
    auto const path = folder_.path() / "some.json";
    base::write_file_atomically(path, text);
    return path;
  }
  /// What reading `text` complains of.
  std::string annotations_error(std::string const& text) {
    auto const path = write(text);
    return error_of([&] { read_annotations(path); });
  }
  std::string detections_error(std::string const& text) {
    auto const path = write(text);
    return error_of([&] { read_detections(path, CocoDataset{{1}, {{1, "a"}}, {}}); });
  }
  template <typename Call>
  std::string error_of(Call&& call) {
    try {
      call();
    } catch (base::Error const& error) {
      EXPECT_EQ(error.code(), base::ExitCode::bad_data);
      return error.what();
    }
    return "no error";
  }
  testing::TemporaryFolder folder_;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(CocoFiles, ReadsAnnotationsAndPassesOverTheRest) {
  auto const path = write(R"({
    "info": {"id": 5, "images": [1]}, "licenses": [{"id": 9}], "tags": [1, "x", null],
    "images": [{"id": 4, "file_name": "a.jpg", "extra": {"id": 77}}, {"id": 2.0}],
    "categories": [{"id": 17, "name": "b"}, {"id": 3}],
    "annotations": [
      {"id": 1, "image_id": 4, "category_id": 17, "bbox": [1, 2, 3, 4.5], "area": 7, "iscrowd": 1,
       "segmentation": {"counts": [1, 2], "size": [3, 4]}, "ignore": 1},
      {"bbox": [0, 0, 2, 3], "segmentation": [[1, 2, 3]], "category_id": 3, "image_id": 2, "id": 8}]})");
  auto const [data, warnings] = read_annotations(path);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(data.image_ids, (std::vector<std::int64_t>{4, 2}));
  ASSERT_EQ(data.categories.size(), 2u);
  EXPECT_EQ(data.categories[0].name, "b");
  EXPECT_EQ(data.categories[1].name, "3");
  ASSERT_EQ(data.objects.size(), 2u);
  EXPECT_EQ(data.objects[0].box, (std::array<double, 4>{1, 2, 3, 4.5}));
  EXPECT_EQ(data.objects[0].area, 7);
  EXPECT_TRUE(data.objects[0].is_crowd);
  EXPECT_EQ(data.objects[1].id, 8);
  EXPECT_EQ(data.objects[1].area, 6) << "a missing area is w * h";
  EXPECT_FALSE(data.objects[1].is_crowd) << "a missing iscrowd is 0";
}

TEST_F(CocoFiles, NamesRecordAndFieldThatAreWrong) {
  auto with = [](std::string const& annotation) {
    return R"({"images": [], "categories": [], "annotations": [)" + annotation + "]}";
  };
  std::string const good = R"({"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]})";
  EXPECT_EQ(annotations_error(with(good)), "no error");
  auto const missing =
      annotations_error(with(good + R"(, {"id": 2, "category_id": 1, "bbox": [0, 0, 1, 1]})"));
  EXPECT_HAS(missing, "some.json");
  EXPECT_HAS(missing, "annotations entry 1 ");
  EXPECT_HAS(missing, "\"image_id\"");
  EXPECT_HAS(annotations_error(with(good + ", " + good)), "id 1 of an annotation before it");
  EXPECT_HAS(annotations_error(with(good + ", 7")), "annotations entry 1 ");
  EXPECT_HAS(annotations_error(
                 with(R"({"id": "x7", "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]})")),
             "'x7'");
  EXPECT_HAS(
      annotations_error(with(R"({"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 1]})")),
      "2 entries");
  EXPECT_HAS(annotations_error(
                 with(R"({"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 1, null, 2]})")),
             "not all of them numbers");
  EXPECT_HAS(annotations_error(with(R"({"id": 1, "image_id": 1, "category_id": 1})")), "\"bbox\"");
  EXPECT_HAS(annotations_error(R"({"images": [], "annotations": []})"), "\"categories\"");
  EXPECT_HAS(annotations_error("[]"), "not an object");
  EXPECT_HAS(annotations_error("7"), "not an object");
  EXPECT_HAS(annotations_error(with(good).substr(0, 80)), "at byte 81");
  EXPECT_HAS(error_of([&] { read_annotations(folder_.path() / "absent.json"); }), "absent.json");
}

TEST_F(CocoFiles, WarnsOfAnAnnotationWithIdZero) {
  auto const folder = testing::golden_dir() / "eval" / "h27_id_zero";
  auto const warnings = read_annotations(folder / "gt.json").warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_HAS(warnings[0], "id 0");
}

TEST_F(CocoFiles, ReadsAnEmptyListOfResults) {
  EXPECT_EQ(detections_error("[]"), "no error");
}

TEST_F(CocoFiles, NamesResultsThatAreWrong) {
  std::string const good = R"({"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1})";
  EXPECT_EQ(detections_error("[" + good + "]"), "no error");
  auto const unlisted = detections_error(
      "[" + good + R"(, {"image_id": 5, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}])");
  EXPECT_HAS(unlisted, "some.json: entry 1 ");
  EXPECT_HAS(unlisted, "image 5,");
  EXPECT_HAS(detections_error(R"([{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}])"),
             "\"score\"");
  EXPECT_HAS(detections_error(R"({"annotations": []})"), "not a list");
  EXPECT_HAS(detections_error("[" + good), "not JSON");
  EXPECT_HAS(detections_error("[[1]]"), "entry 0 ");
  EXPECT_HAS(detections_error(
                 R"([{"image_id": "a", "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}])"),
             "\"image_id\" that is not a whole number");
}

// Python: [round(x, 3) for x in (0.0625, 0.1875, 2.0005, 123.45678)], round(0.123456789, 5).
// 0.0625 and 0.1875 are halves, which go to the even digit.
TEST_F(CocoFiles, RoundsToTheDecimalsOfResultsFiles) {
  CocoDetection const given{1, 1, {0.0625f, 0.1875f, 2.0005f, 123.45678f}, 0.123456789f};
  auto const got = rounded(given);
  EXPECT_EQ(got.box, (std::array<double, 4>{0.062, 0.188, 2.0, 123.457}));
  EXPECT_EQ(got.score, 0.12346);
}

TEST_F(CocoFiles, WritesWhatItReads) {
  std::vector<NamedDetection> const detections = {
      {rounded({1, 17, {0.5, 1.0 / 3, 100, 7e-4}, 0.00001}), "a \"b\".jpg"},
      {rounded({-3, 4, {1, 2, 3, 4}, 1}), ""}};
  auto const path = folder_.path() / "out.json";
  write_detections(path, detections);
  EXPECT_EQ(
      base::read_text_file(path),
      "[\n"
      R"({"image_id":1,"file_name":"a \"b\".jpg","category_id":17,"bbox":[0.5,0.333,100,0.001],"score":1e-05},)"
      "\n"
      R"({"image_id":-3,"category_id":4,"bbox":[1,2,3,4],"score":1})"
      "\n]\n");
  auto const back = read_detections(path);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].box, detections[0].detection.box);
  EXPECT_EQ(back[0].score, detections[0].detection.score);
  EXPECT_EQ(back[1].image_id, -3);
  write_detections(path, std::span<CocoDetection const>{});
  EXPECT_TRUE(read_detections(path).empty());
}

TEST(Summary, ReadsLikeThatOfTheReference) {
  CocoResults results;
  results.numbers = {0.5, 0.12345, 1, -1, 0.25, 0.75, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  results.detection_limits = {1, 10, 100};
  EXPECT_EQ(summary_text(results),
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.500\n"
            " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.123\n"
            " Average Precision  (AP) @[ IoU=0.75      | area=   all | maxDets=100 ] = 1.000\n"
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000\n"
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area=medium | maxDets=100 ] = 0.250\n"
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = 0.750\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = 0.100\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets= 10 ] = 0.200\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.300\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = 0.400\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area=medium | maxDets=100 ] = 0.500\n"
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = 0.600\n");
}

TEST(Summary, HasTheKeysOfTheContract) {
  CocoResults results;
  results.numbers[AP] = 1.0 / 3;
  results.per_category = {{17, {}, {}, {}}};
  results.images = 5;
  results.detections = 6;
  CocoCategory const category{17, "cell"};
  auto const json = nlohmann::json::parse(summary_json(results, {&category, 1}, 1.5));
  for (auto const name : coco_number_names) EXPECT_TRUE(json.contains(std::string(name)));
  EXPECT_EQ(json.at("AP").get<double>(), 1.0 / 3);
  EXPECT_EQ(json.at("per_category").at(0).at("name"), "cell");
  EXPECT_EQ(json.at("per_category").at(0).at("id"), 17);
  EXPECT_TRUE(json.at("per_category").at(0).contains("AP"));
  EXPECT_EQ(json.at("images"), 5);
  EXPECT_EQ(json.at("detections"), 6);
  EXPECT_EQ(json.at("seconds"), 1.5);
}

}  // namespace
}  // namespace yolohpc::eval
