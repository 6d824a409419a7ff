#include "yolohpc/base/safetensors.hpp"

#include <cstring>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"

#include "support/golden.hpp"

namespace yolohpc::base {
namespace {

Safetensors small() {
  Safetensors content;
  content.metadata["who"] = "test";
  content.tensors.push_back({"a", at::arange(6, at::kFloat).view({2, 3}).t()});
  content.tensors.push_back({"empty", at::empty({0, 4}, at::kInt)});
  content.tensors.push_back({"count", at::arange(1, at::kLong).squeeze()});
  return content;
}

std::string text_of(std::vector<std::byte> const& bytes) {
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

std::string message_of(std::vector<std::byte> const& bytes) {
  try {
    parse_safetensors(bytes, "x.safetensors");
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  return "accepted";
}

std::vector<std::byte> with_header(std::string const& header, std::size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::uint64_t const length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

TEST(Safetensors, KeepsOrderShapesTypesAndValuesOfStridedTensors) {
  auto const back = parse_safetensors(serialize(small()), "memory");
  ASSERT_EQ(back.tensors.size(), 3u);
  EXPECT_EQ(back.metadata.at("who"), "test");
  EXPECT_EQ(back.tensors[0].name, "a");
  EXPECT_EQ(back.tensors[0].tensor.sizes(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(back.tensors[0].tensor.data_ptr<float>()[1], 3.0f);
  EXPECT_EQ(back.tensors[1].tensor.sizes(), (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(back.tensors[2].tensor.dim(), 0);
}

TEST(Safetensors, WritesTheSameBytesTwice) {
  EXPECT_EQ(text_of(serialize(small())), text_of(serialize(small())));
}

TEST(Safetensors, RefusesEveryCut) {
  auto const bytes = serialize(small());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(message_of({bytes.begin(), bytes.begin() + static_cast<long>(size)}), "accepted")
        << size;
  }
}

TEST(Safetensors, RefusesHeadersThatLie) {
  auto const entry = [](char const* offsets, char const* shape = "[1]", char const* type = "F32") {
    return std::string("{\"t\":{\"dtype\":\"") + type + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}}";
  };
  EXPECT_EQ(message_of(with_header(entry("[0,4]"), 4)), "accepted");
  EXPECT_NE(message_of(with_header(entry("[4,8]"), 8)).find("claims bytes 4 to 8"),
            std::string::npos);
  EXPECT_NE(message_of(with_header(entry("[0,4]"), 5)).find("appended"), std::string::npos);
  EXPECT_NE(message_of(with_header(entry("[0,4]"), 3)).find("cut short"), std::string::npos);
  EXPECT_NE(message_of(with_header(entry("[0,4]", "[2]"), 4)).find("needs 8 bytes"),
            std::string::npos);
  EXPECT_NE(message_of(with_header(entry("[0,4]", "[-1]"), 4)).find("extent -1"),
            std::string::npos);
  EXPECT_NE(message_of(with_header(entry("[0,4]", "[4611686018427387904,4]"), 4)), "accepted");
  EXPECT_NE(message_of(with_header(entry("[0,4]", "[1]", "F31"), 4)).find("'F31'"),
            std::string::npos);
  EXPECT_NE(message_of(with_header("{\"t\":", 4)).find("damaged"), std::string::npos);
}

TEST(Safetensors, ReadsAFileMadeByTheReferenceWriter) {
  auto const file = testing::golden_tensors("loss_nc3.safetensors");
  EXPECT_EQ(find_tensor(file.tensors, "pred_scores").sizes(),
            (std::vector<std::int64_t>{4, 3, 420}));
  EXPECT_FALSE(find_tensor(file.tensors, "nothing").defined());
}

// Check values of the fixture description.
TEST(FormulaFill, GivesTheStatedBits) {
  EXPECT_EQ(testing::formula_bits("image", 0, 0), 0xBCB57DB5u);
  EXPECT_EQ(testing::formula_bits("image", 0, 1), 0x7252D071u);
  EXPECT_EQ(testing::formula_bits("model.0.conv.weight", 0, 0), 0x45027B57u);
}

}  // namespace
}  // namespace yolohpc::base
