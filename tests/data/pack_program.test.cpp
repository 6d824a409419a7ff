// yolohpc-pack as users start it: options, exit codes, reports, files.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "yolohpc/base/files.hpp"

#include "data/packed_set.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::run_command;
using testing::TemporaryFolder;

std::string quoted(std::string const& text) {
  return "'" + text + "'";
}

std::map<std::string, std::string> files_in(fs::path const& folder) {
  std::map<std::string, std::string> files;
  if (!fs::exists(folder)) return files;
  for (auto const& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = base::read_text_file(entry.path());
  }
  return files;
}

class PackProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = testing::bin_dir() / "yolohpc-pack";
    if (!fs::exists(program_)) GTEST_SKIP() << "skipped: " << program_ << " is not built";
  }
  fs::path const& folder() const { return folder_.path(); }

  /// Runs the program; `report` is what --report gave.
  testing::CommandResult pack(fs::path const& images, fs::path const& annotations,
                              std::string const& more, std::string const& before = "") {
    fs::remove_all(folder() / "out");
    fs::remove(folder() / "report.json");
    auto const result =
        run_command(before + quoted(program_) + " --images " + quoted(images) + " --annotations " +
                    quoted(annotations) + " --out " + quoted(folder() / "out") + " --report " +
                    quoted(folder() / "report.json") + " " + more);
    report_ = fs::exists(folder() / "report.json")
                  ? json::parse(base::read_text_file(folder() / "report.json"))
                  : json();
    return result;
  }
  bool has_output() const { return !files_in(folder() / "out").empty(); }

  TemporaryFolder folder_;
  fs::path program_;
  json report_;
};

/// The base data of the reported cases: 8 pictures of 200 x 120, ids 1 to 8, 2 boxes each.
class ReportedCase : public PackProgram {
 protected:
  void SetUp() override {
    PackProgram::SetUp();
    if (IsSkipped()) return;
    fs::create_directories(folder() / "images");
    for (int id = 1; id <= 8; ++id) {
      auto const picture = testing::smooth_picture(200, 120, static_cast<std::uint64_t>(id));
      std::string const name = base::join(id, is_jpeg_ ? ".jpg" : ".png");
      base::write_file_atomically(folder() / "images" / name, is_jpeg_
                                                                  ? testing::jpeg_bytes(picture)
                                                                  : testing::png_bytes(picture));
      coco_["images"].push_back({{"id", id}, {"file_name", name}, {"width", 200}, {"height", 120}});
      for (int k = 0; k < 2; ++k) {
        coco_["annotations"].push_back({{"id", 2 * id + k},
                                        {"image_id", id},
                                        {"category_id", 1 + k},
                                        {"bbox", {20 + 50 * k, 30, 40, 50}},
                                        {"area", 2000},
                                        {"iscrowd", 0}});
      }
    }
    coco_["categories"] = {{{"id", 1}, {"name", "a"}}, {{"id", 2}, {"name", "b"}}};
  }
  testing::CommandResult pack_case(std::string const& more = "", std::string const& before = "") {
    base::write_file_atomically(folder() / "labels.json", coco_.dump());
    return pack(folder() / "images", folder() / "labels.json", more, before);
  }

  bool is_jpeg_ = false;
  json coco_;
};

class ReportedJpegCase : public ReportedCase {
 protected:
  ReportedJpegCase() { is_jpeg_ = true; }
};

// B01, first half: classes follow ascending ids whatever the ids are.
TEST_F(ReportedCase, B01CategoryIdsAreKept) {
  coco_["categories"] = {{{"id", 17}, {"name", "b"}}, {{"id", 3}, {"name", "a"}}};
  for (auto& annotation : coco_["annotations"]) {
    annotation["category_id"] = annotation["category_id"] == 1 ? 3 : 17;
  }
  ASSERT_EQ(pack_case().status, 0);
  ShardSet const set(folder() / "out", "train");
  ASSERT_EQ(set.categories().size(), 2u);
  EXPECT_EQ(set.categories()[0].id, 3);
  EXPECT_EQ(set.categories()[1].id, 17);
  EXPECT_EQ(set.annotations(0)[0].class_index, 0);
  EXPECT_EQ(set.annotations(0)[1].class_index, 1);
}

TEST_F(ReportedCase, B01AnUnlistedCategoryIsNamed) {
  coco_["annotations"][5]["category_id"] = 9;
  auto const result = pack_case();
  EXPECT_EQ(result.status, 3);
  std::string const expected =
      base::join("annotation ", coco_["annotations"][5]["id"], " names category_id 9");
  EXPECT_NE(result.output.find(expected), std::string::npos) << result.output;
  EXPECT_FALSE(has_output());
}

TEST_F(ReportedJpegCase, B02BadFilesAreListedAndSourcesUntouched) {
  auto const image = [this](int id) { return folder() / "images" / base::join(id, ".jpg"); };
  fs::resize_file(image(1), fs::file_size(image(1)) / 2);
  fs::resize_file(image(2), fs::file_size(image(2)) - 2);
  fs::resize_file(image(3), fs::file_size(image(3)) + 16);
  fs::resize_file(image(4), 0);
  base::write_file_atomically(image(5), "this is a text");
  auto const before = files_in(folder() / "images");

  auto const refused = pack_case();
  EXPECT_EQ(refused.status, 3);
  EXPECT_FALSE(has_output());
  std::vector<std::string> listed;
  for (auto const& entry : report_["skipped"]) listed.push_back(entry["file"]);
  EXPECT_EQ(listed, (std::vector<std::string>{"1.jpg", "2.jpg", "4.jpg", "5.jpg"}));
  for (auto const& name : listed) EXPECT_NE(refused.output.find(name), std::string::npos);
  EXPECT_EQ(refused.output.find("3.jpg"), std::string::npos);

  EXPECT_EQ(pack_case("--skip-bad").status, 0);
  EXPECT_EQ(report_["images"], 4);
  EXPECT_EQ(report_["skipped"].size(), 4u);
  EXPECT_EQ(ShardSet(folder() / "out", "train").size(), 4);
  EXPECT_EQ(files_in(folder() / "images"), before);
}

TEST_F(ReportedCase, B03BoxesAreClippedAndCounted) {
  std::vector<std::vector<int>> const boxes{
      {150, 90, 100, 80}, {-10, -10, 30, 30}, {300, 10, 20, 20}, {10, 10, 0, 30}, {20, 20, 40, 40}};
  coco_["annotations"] = json::array();
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    coco_["annotations"].push_back(
        {{"id", i + 1}, {"image_id", 1}, {"category_id", 1}, {"bbox", boxes[i]}});
  }
  ASSERT_EQ(pack_case().status, 0);
  EXPECT_EQ(report_["boxes"], 3);
  EXPECT_EQ(report_["converted"]["box_clipped"], 2);
  EXPECT_EQ(report_["converted"]["box_outside"], 1);
  EXPECT_EQ(report_["converted"]["box_empty"], 1);
  ShardSet const set(folder() / "out", "train");
  EXPECT_EQ(set.size(), 8);
  std::vector<TrainingBox> const expected{
      {{150, 90, 200, 120}, 0}, {{0, 0, 20, 20}, 0}, {{20, 20, 60, 60}, 0}};
  EXPECT_EQ(set.training_boxes(0), expected);
  EXPECT_EQ(set.annotations(0).size(), 5u);  // evaluation sees them as given
  EXPECT_EQ(set.annotations(0)[0].xywh_px, (std::array<double, 4>{150, 90, 100, 80}));
}

TEST_F(ReportedCase, RanksMakeTheSameFiles) {
  char const* mpiexec = std::getenv("TEST_MPIEXEC");
  std::string const launcher = mpiexec == nullptr ? "mpirun" : mpiexec;
  ASSERT_EQ(pack_case("--shard-mib 0.02").status, 0);
  auto const expected = files_in(folder() / "out");
  EXPECT_GT(expected.size(), 3u);
  for (int ranks : {2, 3}) {
    auto const result =
        pack_case("--shard-mib 0.02",
                  base::join(launcher, " --oversubscribe --bind-to none -np ", ranks, " "));
    ASSERT_EQ(result.status, 0) << result.output;
    EXPECT_EQ(files_in(folder() / "out"), expected) << ranks << " ranks";
  }
  fs::remove(folder() / "images" / "7.png");
  auto const refused = pack_case("", launcher + " --oversubscribe --bind-to none -np 2 ");
  EXPECT_EQ(refused.status, 3) << refused.output;
  EXPECT_NE(refused.output.find("7.png"), std::string::npos) << refused.output;
  EXPECT_FALSE(has_output());
}

TEST_F(ReportedCase, H5pyReadsAShard) {
  char const* python = std::getenv("TEST_H5PY_PYTHON");
  if (python == nullptr || run_command(quoted(python) + " -c 'import h5py'").status != 0) {
    GTEST_SKIP() << "skipped: no Python with h5py";
  }
  ASSERT_EQ(pack_case().status, 0);
  base::write_file_atomically(folder() / "read.py", R"(
import h5py, sys
with h5py.File(sys.argv[1], "r") as f:
    print([n.decode() for n in f.attrs["category_names"]], list(f.attrs["category_ids"]))
    for i in range(len(f["image_id"])):
        begin, end = f["image_offset"][i:i + 2]
        data = f["image_bytes"][begin:end].tobytes()
        first, last = f["label_offset"][i:i + 2]
        print(f["image_id"][i], data[1:4], f["label_xywh"][first:last].tolist())
)");
  auto const result = run_command(quoted(python) + " " + quoted(folder() / "read.py") + " " +
                                  quoted(folder() / "out" / "train-00000-of-00001.h5"));
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.output.find("['a', 'b'] "), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("8 b'PNG' [[20.0, 30.0, 40.0, 50.0], [70.0, 30.0, 40.0, 50.0]]"),
            std::string::npos)
      << result.output;
}

TEST_F(ReportedCase, VerifyAndLsLookAtAPackedFolder) {
  ASSERT_EQ(pack_case().status, 0);
  std::string const out = quoted(folder() / "out");
  EXPECT_EQ(run_command(quoted(program_) + " verify " + out).status, 0);
  auto const listing = run_command(quoted(program_) + " ls " + out);
  EXPECT_EQ(listing.status, 0);
  EXPECT_NE(listing.output.find("8 images"), std::string::npos) << listing.output;
  auto const shard = folder() / "out" / "train-00000-of-00001.h5";
  std::string bytes = base::read_text_file(shard);
  auto const last = base::read_text_file(folder() / "images" / "8.png");
  bytes[bytes.find(last) + 50] ^= 1;
  base::write_file_atomically(shard, bytes);
  auto const verdict = run_command(quoted(program_) + " verify " + out);
  EXPECT_EQ(verdict.status, 3);
  EXPECT_NE(verdict.output.find("shard 0 of 1"), std::string::npos) << verdict.output;
  EXPECT_NE(verdict.output.find("record 7"), std::string::npos) << verdict.output;
  EXPECT_EQ(run_command(quoted(program_) + " verify " + quoted(folder() / "images")).status, 3);
}

TEST_F(ReportedCase, AUsedFolderIsRefused) {
  ASSERT_EQ(pack_case().status, 0);
  std::string const again = quoted(program_) + " --images " + quoted(folder() / "images") +
                            " --annotations " + quoted(folder() / "labels.json") + " --out " +
                            quoted(folder() / "out");
  auto const refused = run_command(again);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.output.find("--overwrite"), std::string::npos) << refused.output;
  EXPECT_EQ(run_command(again + " --overwrite").status, 0);
}

TEST_F(PackProgram, UsageFaultsNameTheNearestOption) {
  auto const result = run_command(quoted(program_) + " --anotations x --out y");
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("--annotations"), std::string::npos) << result.output;
  EXPECT_EQ(run_command(quoted(program_) + " --out x").status, 2);
  EXPECT_EQ(run_command(quoted(program_) + " --help").status, 0);
  auto const version = run_command(quoted(program_) + " --version --json -");
  EXPECT_EQ(version.status, 0);
  EXPECT_TRUE(json::parse(version.output, nullptr, false).is_object()) << version.output;
}

/// What the manifest expects of a file, where the contract does not say otherwise.
std::string expectation_of(json const& entry) {
  // The contract counts these among the faults that --skip-bad leaves out.
  std::string const file = entry["file"];
  if (file == "json/dup_image_ids.json" || file == "json/nan_bbox.json") return "skip";
  return entry["expect"];
}

void expect_counts(json const& report, json const& entry, std::string const& file) {
  json const& result = entry["result"];
  if (file == "json/dup_image_ids.json") {
    EXPECT_EQ(report["images"], 1) << file;
    EXPECT_EQ(report["boxes"], 1) << file;
    return;
  }
  if (file == "json/nan_bbox.json") {
    EXPECT_EQ(report["images"], 3) << file;
    EXPECT_EQ(report["boxes"], 4) << file;
    return;
  }
  for (char const* key : {"images", "boxes", "crowd"}) EXPECT_EQ(report[key], result[key]) << file;
  std::map<std::string, int> kinds;
  for (auto const& fault : report["skipped"]) ++kinds[fault["kind"]];
  if (result.contains("skipped")) {
    for (auto const& [kind, count] : result["skipped"].items())
      EXPECT_EQ(kinds[kind], count) << file;
  } else {
    EXPECT_TRUE(report["skipped"].empty()) << file << report["skipped"];
  }
  for (char const* group : {"converted", "warnings"}) {
    if (!result.contains(group)) continue;
    for (auto const& [name, count] : result[group].items()) {
      EXPECT_EQ(report["converted"][name], count) << file << ": " << name;
    }
  }
}

TEST_F(PackProgram, OddLabelFilesEndAsTheirManifestSays) {
  if (testing::shared_dir().empty()) GTEST_SKIP() << "skipped: ../shared is not there";
  auto const odd = testing::shared_dir() / "data" / "odd";
  auto const manifest = json::parse(base::read_text_file(odd / "manifest.json"));
  int seen = 0;
  for (auto const& entry : manifest["cases"]) {
    if (entry["kind"] != "coco_json") continue;
    ++seen;
    std::string const file = entry["file"];
    std::string const root = entry["images_root"];
    std::string const expectation = expectation_of(entry);
    auto const plain = pack(odd / root, odd / file, "");
    EXPECT_EQ(plain.status, expectation == "accept" ? 0 : 3) << file << '\n' << plain.output;
    EXPECT_EQ(has_output(), expectation == "accept") << file;
    if (expectation == "reject") {
      std::string const error = entry["result"]["error"];
      std::string const wanted = error.substr(0, error.find(','));
      EXPECT_NE(plain.output.find(wanted), std::string::npos) << file << '\n' << plain.output;
    }
    if (expectation == "accept") expect_counts(report_, entry, file);
    auto const skipping = pack(odd / root, odd / file, "--skip-bad");
    EXPECT_EQ(skipping.status, expectation == "reject" ? 3 : 0) << file << '\n' << skipping.output;
    EXPECT_EQ(has_output(), expectation != "reject") << file;
    if (expectation != "reject") expect_counts(report_, entry, file);
  }
  EXPECT_GT(seen, 0);
}

TEST_F(PackProgram, OddPicturesEndAsTheirManifestSays) {
  if (testing::shared_dir().empty()) GTEST_SKIP() << "skipped: ../shared is not there";
  auto const odd = testing::shared_dir() / "data" / "odd";
  auto const before = files_in(odd / "images");
  ASSERT_EQ(pack(odd / "images", odd / "json" / "all_images.json", "--skip-bad").status, 0);
  ShardSet const set(folder() / "out", "train");
  std::map<std::string, Record> records;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    records[std::string(set.record(i).file_name)] = set.record(i);
  }
  auto const manifest = json::parse(base::read_text_file(odd / "manifest.json"));
  for (auto const& entry : manifest["cases"]) {
    if (entry["kind"] != "image") continue;
    std::string const name = fs::path(entry["file"].get<std::string>()).filename().string();
    EXPECT_EQ(records.contains(name), entry["expect"] == "accept") << name;
    if (!records.contains(name)) continue;
    EXPECT_EQ(records[name].width_px, entry["result"]["width"]) << name;
    EXPECT_EQ(records[name].height_px, entry["result"]["height"]) << name;
  }
  EXPECT_EQ(files_in(odd / "images"), before);
}

}  // namespace
}  // namespace yolohpc::data
