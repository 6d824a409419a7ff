#include "value_check.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "yolohpc/base/error.hpp"

namespace yolohpc::cli {
namespace {

using base::join;

std::string lower(std::string_view text) {
  std::string result(text);
  for (auto& letter : result) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return result;
}

// std::from_chars takes no plus sign.
std::string_view without_plus(std::string_view text) {
  return text.size() > 1 && text[0] == '+' && text[1] != '-' ? text.substr(1) : text;
}

template <typename T>
std::optional<T> whole_text_as(std::string_view text) {
  text = without_plus(text);
  T value{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string words_text(std::vector<std::string_view> const& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

// Empty when the number is allowed.
std::string fault_of_number(Option const& option, double value) {
  if (value < option.minimum || (option.is_open_below && value == option.minimum)) {
    return "is too small";
  }
  if (value > option.maximum) return "is too large";
  if (option.multiple_of != 1 && std::fmod(value, option.multiple_of) != 0) {
    return join("is not a multiple of ", option.multiple_of);
  }
  return {};
}

std::string fault_of_integer(Option const& option, std::string_view text) {
  auto const value = to_integer(text);
  if (value) return fault_of_number(option, static_cast<double>(*value));
  // A number that is too long for 64 bits is a whole number all the same.
  bool const is_digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  return is_digits ? "is too large" : "is not a whole number";
}

std::string fault_of_size_range(Option const& option, std::string_view text) {
  auto const range = to_size_range(text);
  if (!range) return "is not of the form LO:HI:STEP";
  if (range->low_px > range->high_px) return "has its larger size first";
  if (range->step_px < 1) return "has a step below 1";
  for (auto const size : {range->low_px, range->high_px, range->step_px}) {
    auto const fault = fault_of_number(option, static_cast<double>(size));
    if (!fault.empty()) return join("has the part ", size, ", which ", fault);
  }
  return {};
}

std::string fault_of(Option const& option, std::string const& text) {
  switch (option.kind) {
    case Kind::on_off:
      return on_off_value(text) ? "" : "is neither on nor off";
    case Kind::integer:
      return fault_of_integer(option, text);
    case Kind::number: {
      auto const value = to_number(text);
      return value ? fault_of_number(option, *value) : "is not a number";
    }
    case Kind::choice:
      return "is none of the choices";
    case Kind::size_range:
      return fault_of_size_range(option, text);
    case Kind::action:
    case Kind::text:
      break;
  }
  return {};
}

std::string with_range(std::string const& form, Option const& option) {
  auto const range = range_text(option);
  return range.empty() ? form : form + ", " + range;
}

std::string form_text(Option const& option) {
  switch (option.kind) {
    case Kind::on_off:
      return "on or off";
    case Kind::integer:
      return with_range("a whole number", option);
    case Kind::number:
      return with_range("a number", option);
    case Kind::size_range:
      return join("LO:HI:STEP, multiples of ", option.multiple_of);
    case Kind::choice:
    case Kind::action:
    case Kind::text:
      break;
  }
  return {};
}

}  // namespace

std::string range_text(Option const& option) {
  bool const has_minimum = std::isfinite(option.minimum);
  bool const has_maximum = std::isfinite(option.maximum);
  std::string text;
  if (has_minimum && has_maximum) {
    text = join(option.is_open_below ? "above " : "", option.minimum,
                option.is_open_below ? ", at most " : " to ", option.maximum);
  } else if (has_minimum) {
    text = join(option.is_open_below ? "above " : "at least ", option.minimum);
  } else if (has_maximum) {
    text = join("at most ", option.maximum);
  }
  if (option.multiple_of == 1) return text;
  return join(text, text.empty() ? "" : ", ", "a multiple of ", option.multiple_of);
}

bool is_word_of(Option const& option, std::string_view text) {
  return std::find(option.words.begin(), option.words.end(), text) != option.words.end();
}

std::optional<std::string> on_off_value(std::string_view text) {
  auto const word = lower(text);
  if (word == "on" || word == "true" || word == "yes" || word == "1") return "on";
  if (word == "off" || word == "false" || word == "no" || word == "0") return "off";
  return std::nullopt;
}

std::optional<double> to_number(std::string_view text) {
  auto const value = whole_text_as<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  return whole_text_as<std::int64_t>(text);
}

std::optional<SizeRange> to_size_range(std::string_view text) {
  auto const first = text.find(':');
  auto const second = first == text.npos ? text.npos : text.find(':', first + 1);
  if (second == text.npos) return std::nullopt;
  auto const low = to_integer(text.substr(0, first));
  auto const high = to_integer(text.substr(first + 1, second - first - 1));
  auto const step = to_integer(text.substr(second + 1));
  if (!low || !high || !step) return std::nullopt;
  return SizeRange{*low, *high, *step};
}

std::string allowed_text(Option const& option) {
  auto const form = form_text(option);
  auto const words = words_text(option.words);
  if (form.empty() || words.empty()) return form + words;
  return form + ", or " + words;
}

std::string checked_value(Option const& option, std::string const& text,
                          std::string const& origin) {
  if (is_word_of(option, text)) return text;
  // Names of choices are written in small letters; `SGD` is meant all the same.
  if (is_word_of(option, lower(text))) return lower(text);
  auto const fault = fault_of(option, text);
  YOLOHPC_CHECK_AS(base::ExitCode::usage, fault.empty(), "--", option.name, " is '", text, "' (",
                   origin, "), which ", fault, ". Allowed: ", allowed_text(option), ".");
  return option.kind == Kind::on_off ? *on_off_value(text) : text;
}

}  // namespace yolohpc::cli
