#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "data/packed_set.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;

/// data.yaml, images/train/{a,b,c}.png of 20 x 10 pixels, labels beside them.
class YoloFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root() / "images" / "train");
    fs::create_directories(root() / "labels" / "train");
    auto const png = testing::png_bytes(testing::smooth_picture(20, 10, 1));
    for (char const* name : {"b.png", "a.png", "c.png"}) {
      base::write_file_atomically(root() / "images" / "train" / name, png);
    }
    yaml("path: .\ntrain: images/train\nval: images/train\nnames: [dog, cat]\n");
    labels("a.txt", "0 0.5 0.5 0.5 0.4\n1 0.25 0.5 0.1 0.2\n");
    labels("b.txt", "");
  }
  fs::path const& root() const { return folder_.path(); }
  void yaml(std::string const& text) { base::write_file_atomically(root() / "data.yaml", text); }
  void labels(std::string const& name, std::string const& text) {
    base::write_file_atomically(root() / "labels" / "train" / name, text);
  }
  LabelSource read(std::string const& split = "train") const {
    return read_yolo_folder(root() / "data.yaml", split, {});
  }
  std::string message(std::string const& split = "train") const {
    try {
      read(split);
    } catch (base::Error const& error) {
      EXPECT_EQ(error.code(), base::ExitCode::bad_data);
      return error.what();
    }
    return "accepted";
  }

  testing::TemporaryFolder folder_;
};

TEST_F(YoloFolder, BecomesPixelsOfThePackedPicture) {
  auto const source = read();
  ASSERT_EQ(source.images.size(), 3u);
  EXPECT_EQ(source.images[0].file_name, "images/train/a.png");  // by path, not by folder order
  EXPECT_TRUE(source.faults.empty());
  testing::TemporaryFolder out;
  auto const report =
      pack(source, file_reader(source), testing::pack_settings(out.path()), lone_rank());
  EXPECT_EQ(report.images, 3);
  EXPECT_EQ(report.boxes, 2);
  EXPECT_EQ(report.background, 2);
  ShardSet const set(out.path(), "train");
  ASSERT_EQ(set.annotations(0).size(), 2u);
  // Centre (10, 5), size (10, 4): left 5, top 3.
  EXPECT_EQ(set.annotations(0)[0].xywh_px, (std::array<double, 4>{5, 3, 10, 4}));
  EXPECT_EQ(set.annotations(0)[0].area, 40);
  EXPECT_EQ(set.annotations(0)[1].class_index, 1);
  EXPECT_EQ(set.categories()[1].name, "cat");
  EXPECT_EQ(set.categories()[1].id, 1);
}

TEST_F(YoloFolder, BadRowsAreFaultsWithFileAndLine) {
  labels("a.txt",
         "0 0.5 0.5 0.5 0.4\n2 0.5 0.5 0.5 0.4\n0 0.5 0.5 0.5\n0 320 0.5 0.5 0.4\n0 x 0 0 0\n"
         "0.5 0.5 0.5 0.5 0.4\n0 nan 0.5 0.5 0.4\n");
  auto const source = read();
  ASSERT_EQ(source.faults.size(), 6u);
  EXPECT_EQ(source.faults[0].kind, "annotation_unknown_category");
  EXPECT_EQ(source.faults[0].file, "labels/train/a.txt");
  for (std::size_t i = 0; i < 6; ++i) {
    std::string const line = base::join("line ", i + 2, ":");
    EXPECT_EQ(source.faults[i].reason.rfind(line, 0), 0u) << source.faults[i].reason;
  }
  EXPECT_NE(source.faults[1].reason.find("4 columns"), std::string::npos);
  EXPECT_NE(source.faults[2].reason.find("320"), std::string::npos);
  EXPECT_EQ(source.annotations.size(), 1u);
}

TEST_F(YoloFolder, NamesMayBeAMapAndTheSplitAList) {
  base::write_file_atomically(root() / "list.txt", "./images/train/c.png\nimages/train/a.png\r\n");
  yaml("path: " + root().string() + "\ntrain: [list.txt]\nnames:\n  5: x\n  0: y\n");
  labels("a.txt", "5 0.5 0.5 0.5 0.4\n");
  auto const source = read();
  ASSERT_EQ(source.images.size(), 2u);
  EXPECT_EQ(source.images[1].file_name, "images/train/c.png");
  ASSERT_EQ(source.annotations.size(), 1u);
  EXPECT_EQ(source.annotations[0].class_index, 1);
  EXPECT_EQ(source.categories[1].id, 5);
}

TEST_F(YoloFolder, MessagesNameWhatIsMissing) {
  EXPECT_NE(message("test").find("has no entry 'test'"), std::string::npos) << message("test");
  yaml("train: images/elsewhere\nnames: [x]\n");
  EXPECT_NE(message().find("elsewhere"), std::string::npos) << message();
  yaml("train: images/train\n");
  EXPECT_NE(message().find("no names"), std::string::npos) << message();
  yaml("names: [x\n");
  EXPECT_NE(message().find("data.yaml"), std::string::npos) << message();
}

}  // namespace
}  // namespace yolohpc::data
