// Values of options: is a text one, and what would be.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "yolohpc/cli/options.hpp"

namespace yolohpc::cli {

/// The text in its normal form (`on` for `True`).
/// \param origin  where the text came from, for the message
/// \throws Error (usage)  it is not a value of `option`; says what is allowed
std::string checked_value(Option const& option, std::string const& text, std::string const& origin);

/// `a whole number, at least 1, or auto`
std::string allowed_text(Option const& option);
/// `at least 1`; empty when a number has no limits.
std::string range_text(Option const& option);

bool is_word_of(Option const& option, std::string_view text);
/// `on` or `off` for any spelling of them; empty otherwise.
std::optional<std::string> on_off_value(std::string_view text);
/// The whole text as a number; empty when it is none, or not finite.
std::optional<double> to_number(std::string_view text);
std::optional<std::int64_t> to_integer(std::string_view text);
std::optional<SizeRange> to_size_range(std::string_view text);

}  // namespace yolohpc::cli
