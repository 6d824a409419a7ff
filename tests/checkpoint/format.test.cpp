// The bytes of a checkpoint: what is written is read, and no damage passes.
#include "yolohpc/checkpoint/format.hpp"

#include <cstring>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::checkpoint {
namespace {

base::Safetensors content() {
  base::Safetensors result;
  result.metadata = {{"config", "epochs = 3\n"}, {"digest", "abc"}};
  result.tensors = {
      {"model.weight", at::arange(60, at::kFloat).reshape({3, 4, 5})},
      {"optimizer.momentum",
       at::arange(24, at::kFloat).reshape({2, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast)},
      {"steps", at::tensor(std::vector<std::int64_t>{17})},
      {"empty", at::empty({0, 4}, at::kFloat)},
  };
  return result;
}

std::string refusal(std::vector<std::byte> const& bytes) {
  try {
    decode(bytes, "FILE");
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::bad_data);
    return error.what();
  }
  return "";
}

std::size_t header_end(std::vector<std::byte> const& bytes) {
  std::uint64_t header_bytes;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  return sizeof header_bytes + header_bytes;
}

TEST(CheckpointFormat, ReadsWhatWasWritten) {
  auto const bytes = encode(content(), {4, 1234}, Quality::best);
  auto const decoded = decode(bytes, "FILE");
  EXPECT_EQ(decoded.position.epoch, 4);
  EXPECT_EQ(decoded.position.step, 1234);
  EXPECT_EQ(decoded.quality, Quality::best);
  EXPECT_EQ(decoded.content.metadata, content().metadata);
  auto const expected = content().tensors;
  ASSERT_EQ(decoded.content.tensors.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(decoded.content.tensors[i].name, expected[i].name);
    EXPECT_TRUE(at::equal(decoded.content.tensors[i].tensor, expected[i].tensor));
  }
}

TEST(CheckpointFormat, LayoutLeavesNoTraceInTheBytes) {
  auto row_major = content();
  for (auto& entry : row_major.tensors) entry.tensor = entry.tensor.contiguous();
  EXPECT_EQ(encode(content(), {1, 2}, Quality::ordinary),
            encode(row_major, {1, 2}, Quality::ordinary));
}

TEST(CheckpointFormat, EveryCutIsRefused) {
  auto const bytes = encode(content(), {4, 1234}, Quality::ordinary);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(refusal({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}), "")
        << "cut to " << size << " of " << bytes.size();
  }
}

// Spaces that fill the header carry no meaning, and JSON readers take a zero byte behind the end
// for one. So a flip is refused or changes nothing at all.
TEST(CheckpointFormat, NoFlippedBitChangesWhatIsRead) {
  auto const bytes = encode(content(), {4, 1234}, Quality::ordinary);
  std::size_t harmless = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = bytes;
      damaged[i] ^= static_cast<std::byte>(1 << bit);
      if (!refusal(damaged).empty()) continue;
      auto decoded = decode(damaged, "FILE");
      EXPECT_EQ(encode(decoded.content, decoded.position, decoded.quality), bytes)
          << "bit " << bit << " of byte " << i;
      ++harmless;
    }
  }
  EXPECT_LT(harmless, 8u);
}

TEST(CheckpointFormat, DamagedTensorIsNamed) {
  auto bytes = encode(content(), {4, 1234}, Quality::ordinary);
  auto const first_tensor_bytes = 60 * sizeof(float);
  bytes[header_end(bytes) + first_tensor_bytes + 5] ^= std::byte{0x10};
  auto const text = refusal(bytes);
  EXPECT_NE(text.find("FILE: tensor optimizer.momentum has the checksum"), std::string::npos)
      << text;
}

TEST(CheckpointFormat, AppendedBytesAreRefused) {
  auto bytes = encode(content(), {4, 1234}, Quality::ordinary);
  bytes.push_back(std::byte{0});
  EXPECT_NE(refusal(bytes).find("bytes appended"), std::string::npos);
}

TEST(CheckpointFormat, ForeignFileIsRefused) {
  auto const text = refusal(base::serialize(content()));
  EXPECT_NE(text.find("is not a checkpoint"), std::string::npos) << text;
}

TEST(CheckpointFormat, ReservedMetadataKeysAreRefused) {
  auto bad = content();
  bad.metadata["checkpoint.step"] = "7";
  EXPECT_THROW(encode(bad, {1, 2}, Quality::ordinary), base::Error);
}

}  // namespace
}  // namespace yolohpc::checkpoint
