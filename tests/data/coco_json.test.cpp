#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"
#include "yolohpc/data/label_source.hpp"

#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

constexpr char good_images[] =
    R"([{"id":1,"file_name":"a.jpg","width":64,"height":48},{"id":2,"file_name":"d/b.jpg"}])";
constexpr char good_categories[] = R"([{"id":9,"name":"late"},{"id":3,"name":"early"}])";

LabelSource read(std::string const& text) {
  testing::TemporaryFolder folder;
  base::write_file_atomically(folder.path() / "x.json", text);
  return read_coco_json(folder.path() / "x.json", "images");
}

LabelSource read_annotations(std::string const& annotations) {
  return read(base::join("{\"images\":", good_images, ",\"categories\":", good_categories,
                         ",\"annotations\":", annotations, "}"));
}

std::string message_of(std::string const& text) {
  try {
    read(text);
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::bad_data);
    return error.what();
  }
  return "accepted";
}

void expect_message(std::string const& text, std::string const& part) {
  std::string const message = message_of(text);
  EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in: " << message;
}

TEST(CocoJson, JoinsAnnotationsThatStandBeforeTheirImages) {
  auto const source = read(base::join(
      R"({"annotations":[{"id":7,"image_id":2,"category_id":9,"bbox":[1,2.5,3,4]},)",
      R"({"id":8,"image_id":1,"category_id":3,"bbox":[5,6,7,8],"area":9.5,"iscrowd":1}],)",
      R"("categories":)", good_categories, R"(,"images":)", good_images, "}"));
  ASSERT_EQ(source.images.size(), 2u);
  EXPECT_EQ(source.images[0].file_name, "a.jpg");
  EXPECT_EQ(source.images[0].width_px, 64);
  EXPECT_EQ(source.images[1].width_px, 0);
  EXPECT_EQ(source.first_annotation, (std::vector<std::uint64_t>{0, 1, 2}));
  // Class index: place of the category id in ascending order, so 3 is class 0 and 9 is class 1.
  EXPECT_EQ(source.categories[0].name, "early");
  EXPECT_EQ(source.annotations[0].id, 8);
  EXPECT_EQ(source.annotations[0].class_index, 0);
  EXPECT_TRUE(source.annotations[0].is_crowd);
  EXPECT_EQ(source.annotations[0].area, 9.5);
  EXPECT_EQ(source.annotations[1].class_index, 1);
  EXPECT_FALSE(source.annotations[1].is_crowd);
  EXPECT_EQ(source.annotations[1].area, 12.0);  // missing: w h
  EXPECT_EQ(source.annotations[1].xywh_px, (std::array<double, 4>{1, 2.5, 3, 4}));
  EXPECT_EQ(source.converted.at("area_missing"), 1);
  EXPECT_TRUE(source.faults.empty());
}

TEST(CocoJson, KeepsIdsThatADoubleCannotHold) {
  auto const source = read(
      R"({"images":[{"id":9007199254740993,"file_name":"a.jpg"},{"id":9007199254740992,"file_name":"b.jpg"},)"
      R"({"id":9223372036854775807,"file_name":"c.jpg"}],"categories":[{"id":1,"name":"x"}],)"
      R"("annotations":[{"id":1,"image_id":9007199254740993,"category_id":1,"bbox":[0,0,1,1]}]})");
  EXPECT_EQ(source.images[2].id, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(source.first_annotation, (std::vector<std::uint64_t>{0, 1, 1, 1}));
}

// E.g. Python writes NaN; the annotation is lost, not the file, and later offsets stay right.
TEST(CocoJson, BadBoxesAreFaultsOfTheirAnnotation) {
  auto const source = read_annotations(
      R"([{"id":1,"image_id":1,"category_id":3,"bbox":[NaN,0,1,1]},)"
      R"({"id":2,"image_id":1,"category_id":3,"bbox":[0,0,-Infinity,1]},)"
      R"({"id":3,"image_id":1,"category_id":3,"bbox":["4",0,1,1]},)"
      R"({"id":4,"image_id":1,"category_id":3,"bbox":[0,0,1]},)"
      R"({"id":5,"image_id":1,"category_id":3},)"
      R"({"id":6,"image_id":1,"category_id":3,"bbox":[[0],0,1,1]},)"
      R"({"id":7,"image_id":5,"category_id":3,"bbox":[0,0,1,1]},)"
      R"({"id":8,"image_id":1,"category_id":4,"bbox":[0,0,1,1]},)"
      R"({"id":9,"image_id":1,"category_id":3,"bbox":[0,0,1,1],"caption":"NaN \" Infinity"}])");
  ASSERT_EQ(source.faults.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(source.faults[i].annotation_id, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(source.faults[i].kind, i == 6   ? "annotation_unknown_image"
                                     : i == 7 ? "annotation_unknown_category"
                                              : "annotation_bad_box")
        << source.faults[i].reason;
  }
  EXPECT_NE(source.faults[2].reason.find("\"4\""), std::string::npos) << source.faults[2].reason;
  EXPECT_NE(source.faults[7].reason.find("category_id 4"), std::string::npos);
  ASSERT_EQ(source.annotations.size(), 1u);
  EXPECT_EQ(source.annotations[0].id, 9);
}

TEST(CocoJson, ImagesThatShareAnIdAreAllFaults) {
  auto const source = read(
      R"({"images":[{"id":1,"file_name":"a.jpg"},{"id":2,"file_name":"b.jpg"},{"id":1,"file_name":"c.jpg"}],)"
      R"("categories":[{"id":1,"name":"x"}],"annotations":[]})");
  ASSERT_EQ(source.faults.size(), 2u);
  EXPECT_EQ(source.faults[0].reason, "duplicate image id 1 (2 images have it)");
  EXPECT_TRUE(source.images[0].excluded);
  EXPECT_FALSE(source.images[1].excluded);
  EXPECT_TRUE(source.images[2].excluded);
}

TEST(CocoJson, MessagesNamePlaceAndValue) {
  std::string const tail = R"(,"categories":[{"id":1,"name":"x"}],"annotations":[]})";
  expect_message(R"({"images":[{"id":"10","file_name":"a.jpg"}])" + tail,
                 "images[0].id is not an integer");
  expect_message(R"({"images":[{"id":1,"file_name":"a"},{"id":1.5,"file_name":"a.jpg"}])" + tail,
                 "images[1].id is not an integer (it is 1.5");
  expect_message(R"({"images":[{"id":9223372036854775808,"file_name":"a.jpg"}])" + tail,
                 "images[0].id is not an integer");
  expect_message(R"({"images":[{"id":1}])" + tail, "images[0] has no file_name");
  expect_message(R"({"images":[{"file_name":"a.jpg"}])" + tail, "images[0] has no id");
  expect_message(R"({"images":[])" + tail, "no images");
  expect_message(R"({"images":[3])" + tail, "images[0] is 3");
  expect_message(R"({"images":{"id":1})" + tail, "images is an object");
  expect_message(R"({"images":[{"id":1,"file_name":"../a.jpg"}])" + tail,
                 "file_name leaves the image root");
  expect_message(R"({"images":[{"id":1,"file_name":"d/../../a.jpg"}])" + tail,
                 "file_name leaves the image root");
  expect_message(R"({"images":[{"id":1,"file_name":"/etc/a.jpg"}])" + tail,
                 "file_name leaves the image root");
  expect_message(R"({"images":[{"id":1,"file_name":"a\u0000.jpg"}])" + tail, "no name of a file");
  expect_message(R"({"images":[{"id":1,"file_name":"a.jpg","width":-3}])" + tail,
                 "images[0].width is -3");
  expect_message(R"({"images":[{"id":1,"file_name":"a.jpg"}],"annotations":[],)"
                 R"("categories":[{"id":4,"name":"x"},{"id":4,"name":"y"}]})",
                 "duplicate category id 4");
  expect_message(R"({"images":[{"id":1,"file_name":"a.jpg"}],"categories":[{"id":4,"name":"x"}]})",
                 "no annotations");
  expect_message("[1]", "begins with a list");
  expect_message("", "invalid JSON");
}

TEST(CocoJson, ABrokenFileIsRefusedWithItsOffset) {
  // 29 bytes up to and including the faulty comma; NaN before it must not shift the count.
  expect_message(R"({"x":[NaN,-Infinity,NaN],"y",2})", "invalid JSON at byte 29");
  std::string const deep = R"({"images":[{"x":)" + std::string(100000, '[');
  expect_message(deep, "nesting too deep");
}

TEST(CocoJson, AMarkOfByteOrderIsAccepted) {
  EXPECT_EQ(read(base::join("\xEF\xBB\xBF", "{\"images\":", good_images, ",\"annotations\":[],",
                            "\"categories\":", good_categories, "}"))
                .images.size(),
            2u);
}

// The file is read in blocks; literals must survive a block's edge wherever it falls.
TEST(CocoJson, LiteralsAcrossBlocksAreSeen) {
  std::string const block(std::size_t{1} << 20, ' ');
  for (std::size_t cut = 0; cut < 12; ++cut) {
    std::string const head = R"({"x":[)";
    std::string const text = head + block.substr(head.size() + cut) +
                             R"(-Infinity,NaN],"images":)" + good_images +
                             R"(,"annotations":[],"categories":)" + good_categories + "}";
    EXPECT_EQ(read(text).images.size(), 2u) << cut;
  }
}

}  // namespace
}  // namespace yolohpc::data
