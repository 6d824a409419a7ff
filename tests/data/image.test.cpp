#include "yolohpc/data/image.hpp"

#include <array>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "yolohpc/base/files.hpp"

#include "data/picture_files.hpp"
#include "support/golden.hpp"

namespace yolohpc::data {
namespace {

using testing::jpeg_bytes;
using testing::png_bytes;
using testing::smooth_picture;

std::array<double, 3> mean_rgb(Image const& image) {
  std::array<double, 3> mean{};
  for (std::size_t i = 0; i < image.rgb.size(); ++i) mean[i % 3] += image.rgb[i];
  for (double& value : mean) value /= static_cast<double>(image.rgb.size()) / 3;
  return mean;
}

ImageFaultKind fault_of(std::vector<std::byte> const& bytes) {
  try {
    decode_image(bytes);
  } catch (ImageFault const& fault) {
    return fault.kind();
  }
  ADD_FAILURE() << "decoded without a fault";
  return ImageFaultKind::empty;
}

// The manifest of odd files was made with other software: sizes, mean colours and who is unusable.
TEST(ImageDecoder, ReadsTheOddFilesAsTheirManifestSays) {
  if (testing::shared_dir().empty()) GTEST_SKIP() << "skipped: ../shared is not there";
  auto const folder = testing::shared_dir() / "data" / "odd";
  auto const manifest = nlohmann::json::parse(base::read_text_file(folder / "manifest.json"));
  ImageDecoder decoder;  // one for all: a fault must not spoil the next picture
  Image image;
  int seen = 0;
  for (auto const& entry : manifest["cases"]) {
    if (entry["kind"] != "image") continue;
    std::string const name = entry["file"];
    auto const bytes = base::read_file(folder / name);
    ++seen;
    if (entry["expect"] == "skip") {
      EXPECT_THROW(decoder.decode(bytes, 1, image), ImageFault) << name;
      continue;
    }
    auto const& result = entry["result"];
    decoder.decode(bytes, read_image_info(bytes).orientation, image);
    EXPECT_EQ(image.width, result["width"]) << name;
    EXPECT_EQ(image.height, result["height"]) << name;
    auto const mean = mean_rgb(image);
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(mean[c], result["rgb_mean"][c].get<double>(),
                  result["rgb_mean_tolerance"].get<double>())
          << name << " channel " << c;
    }
  }
  EXPECT_GT(seen, 0);
}

TEST(ImageDecoder, GreyBecomesThreeEqualChannels) {
  if (testing::shared_dir().empty()) GTEST_SKIP() << "skipped: ../shared is not there";
  auto const image =
      decode_image(base::read_file(testing::shared_dir() / "data" / "odd" / "images" / "grey.jpg"));
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) {
    ASSERT_EQ(image.rgb[i], image.rgb[i + 1]);
    ASSERT_EQ(image.rgb[i], image.rgb[i + 2]);
  }
}

TEST(ImageDecoder, PngIsExact) {
  auto const picture = smooth_picture(31, 17, 1);
  auto const bytes = png_bytes(picture);
  EXPECT_EQ(sniff_format(bytes), ImageFormat::png);
  auto const decoded = decode_image(bytes);
  EXPECT_EQ(decoded.width, 31);
  EXPECT_EQ(decoded.height, 17);
  EXPECT_EQ(decoded.rgb, picture.rgb);
}

// The other interface of the same library, with its defaults, is the peer.
TEST(ImageDecoder, JpegGivesThePixelsOfTurboJpeg) {
  auto const bytes = jpeg_bytes(smooth_picture(67, 45, 2));
  auto const decoded = decode_image(bytes);
  std::vector<std::uint8_t> peer(67 * 45 * 3);
  tjhandle const handle = tjInitDecompress();
  ASSERT_EQ(tjDecompress2(handle, reinterpret_cast<unsigned char const*>(bytes.data()),
                          bytes.size(), peer.data(), 67, 0, 45, TJPF_RGB, 0),
            0);
  tjDestroy(handle);
  EXPECT_EQ(decoded.rgb, peer);
}

TEST(ImageDecoder, BytesAfterTheEndAreIgnored) {
  auto bytes = jpeg_bytes(smooth_picture(40, 30, 3));
  auto const clean = decode_image(bytes);
  bytes.resize(bytes.size() + 16);
  EXPECT_EQ(decode_image(bytes).rgb, clean.rgb);
}

// A decoder that fills the rest with grey would train on made-up pixels.
TEST(ImageDecoder, EveryCutIsAFault) {
  for (auto const& whole :
       {jpeg_bytes(smooth_picture(40, 30, 4)), png_bytes(smooth_picture(40, 30, 4))}) {
    for (std::size_t size :
         {whole.size() - 1, whole.size() - 2, whole.size() / 2, std::size_t{30}}) {
      auto const cut =
          std::vector<std::byte>(whole.begin(), whole.begin() + static_cast<long>(size));
      EXPECT_EQ(fault_of(cut), ImageFaultKind::truncated) << size << " of " << whole.size();
    }
  }
}

TEST(ImageDecoder, FaultsNameWhatTheyFound) {
  EXPECT_EQ(fault_of({}), ImageFaultKind::empty);
  auto const webp = testing::bytes_of("RIFF1234WEBPVP8 ");
  EXPECT_EQ(fault_of(webp), ImageFaultKind::unsupported);
  try {
    decode_image(webp);
  } catch (ImageFault const& fault) {
    EXPECT_NE(std::string(fault.what()).find("WebP"), std::string::npos) << fault.what();
  }
  EXPECT_EQ(fault_of(testing::bytes_of("this is a text")), ImageFaultKind::unsupported);
  auto flipped = png_bytes(smooth_picture(40, 30, 5));
  flipped[flipped.size() / 2] ^= std::byte{0x10};
  EXPECT_EQ(fault_of(flipped), ImageFaultKind::corrupt);
}

TEST(ImageDecoder, AHugeClaimIsRefusedBeforeMemoryIsReserved) {
  auto bytes = png_bytes(smooth_picture(8, 8, 6));
  bytes[16] = bytes[20] = std::byte{0x01};  // both sides 2^24 and more
  EXPECT_EQ(fault_of(bytes), ImageFaultKind::too_large);
}

TEST(ImageInfo, SaysSizeAndOrientationWithoutDecoding) {
  auto const bytes = jpeg_bytes(smooth_picture(40, 30, 7), 6);
  auto const info = read_image_info(bytes);
  EXPECT_EQ(info.format, ImageFormat::jpeg);
  EXPECT_EQ(info.width_px, 40);
  EXPECT_EQ(info.height_px, 30);
  EXPECT_EQ(info.orientation, 6);
  EXPECT_EQ(read_image_info(jpeg_bytes(smooth_picture(40, 30, 7))).orientation, 1);
  EXPECT_EQ(read_image_info(jpeg_bytes(smooth_picture(40, 30, 7), 9)).orientation, 1);
}

// Letters A B C over D E F; each orientation by hand after the EXIF table of rows and columns.
TEST(Turned, AllEightOrientations) {
  auto const letters = [](std::string const& text, int width) {
    Image image{.width = width, .height = static_cast<int>(text.size()) / width, .rgb = {}};
    for (char const letter : text)
      image.rgb.insert(image.rgb.end(), 3, static_cast<std::uint8_t>(letter));
    return image;
  };
  Image const stored = letters("ABCDEF", 3);
  std::array<std::pair<char const*, int>, 8> const shown{{{"ABCDEF", 3},
                                                          {"CBAFED", 3},
                                                          {"FEDCBA", 3},
                                                          {"DEFABC", 3},
                                                          {"ADBECF", 2},
                                                          {"DAEBFC", 2},
                                                          {"FCEBDA", 2},
                                                          {"CFBEAD", 2}}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    auto const& [text, width] = shown[static_cast<std::size_t>(orientation - 1)];
    Image const expected = letters(text, width);
    Image const result = turned(stored, orientation);
    EXPECT_EQ(result.width, expected.width) << orientation;
    EXPECT_EQ(result.height, expected.height) << orientation;
    EXPECT_EQ(result.rgb, expected.rgb) << orientation;
  }
}

TEST(ImageDecoder, AppliesTheTurnItIsGiven) {
  auto const bytes = png_bytes(smooth_picture(12, 7, 8));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(decode_image(bytes, orientation).rgb, turned(decode_image(bytes), orientation).rgb);
  }
}

}  // namespace
}  // namespace yolohpc::data
