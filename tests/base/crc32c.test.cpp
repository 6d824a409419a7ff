#include "yolohpc/base/crc32c.hpp"

#include <string>

#include <gtest/gtest.h>

namespace yolohpc::base {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesTheKnownAnswers) {
  std::string const digits = "123456789";
  std::string const zeros(32, '\0');
  std::string const ones(32, '\xff');
  EXPECT_EQ(crc32c(digits.data(), digits.size()), 0xE3069283u);
  EXPECT_EQ(crc32c(zeros.data(), zeros.size()), 0x8A9136AAu);
  EXPECT_EQ(crc32c(ones.data(), ones.size()), 0x62A8AB43u);
  EXPECT_EQ(detail::crc32c_portable(digits.data(), digits.size(), 0), 0xE3069283u);
}

TEST(Crc32c, PartsContinueToTheSameValueInBothForms) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 31 + i / 7);
  auto const whole = crc32c(text.data(), text.size());
  for (std::size_t cut : {0u, 1u, 7u, 8u, 501u, 1000u}) {
    EXPECT_EQ(crc32c(text.data() + cut, text.size() - cut, crc32c(text.data(), cut)), whole);
    EXPECT_EQ(detail::crc32c_portable(text.data() + cut, text.size() - cut,
                                      detail::crc32c_portable(text.data(), cut, 0)),
              whole);
  }
}

}  // namespace
}  // namespace yolohpc::base
