#include "config_file.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "yolohpc/base/error.hpp"

namespace yolohpc::cli {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  auto const begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string_view without_comment(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool const after_blank = i == 0 || blanks.find(text[i - 1]) != blanks.npos;
    if (text[i] == '#' && after_blank) return text.substr(0, i);
  }
  return text;
}

[[noreturn]] void fail_line(std::string const& origin, int line, std::string_view text,
                            std::string_view why) {
  base::fail(base::ExitCode::usage, origin, ", line ", line, ": '", text, "' ", why,
             ". Lines have the form `key = value`.");
}

// The text behind the opening quote, up to the closing one.
std::string unquoted(std::string_view text, std::string const& origin, int line) {
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      auto const rest = trimmed(without_comment(text.substr(i + 1)));
      if (!rest.empty()) fail_line(origin, line, text, "goes on behind the closing quote");
      return value;
    }
    bool const is_escape = text[i] == '\\' && i + 1 < text.size();
    if (is_escape) ++i;
    value += is_escape && text[i] == 'n' ? '\n' : text[i];
  }
  fail_line(origin, line, text, "has a quote that does not end");
}

bool needs_quotes(std::string const& value) {
  if (value.empty()) return false;
  return value != trimmed(value) || value.front() == '"' || value.find('\n') != value.npos ||
         without_comment(value) != value;
}

}  // namespace

std::vector<ConfigLine> read_config_text(std::string const& text, std::string const& origin) {
  std::vector<ConfigLine> lines;
  std::istringstream stream(text);
  std::string raw;
  for (int number = 1; std::getline(stream, raw); ++number) {
    auto const line = trimmed(raw);
    if (line.empty() || line.front() == '#') continue;
    auto const equals = line.find('=');
    if (equals == line.npos) fail_line(origin, number, line, "has no =");
    std::string key(trimmed(line.substr(0, equals)));
    if (key.empty()) fail_line(origin, number, line, "has no key");
    std::replace(key.begin(), key.end(), '_', '-');
    auto const value = trimmed(line.substr(equals + 1));
    bool const is_quoted = !value.empty() && value.front() == '"';
    lines.push_back(
        {key,
         is_quoted ? unquoted(value, origin, number) : std::string(trimmed(without_comment(value))),
         number});
  }
  return lines;
}

std::string config_line(std::string const& key, std::string const& value) {
  if (!needs_quotes(value)) return key + " =" + (value.empty() ? "" : " ") + value;
  std::string quoted;
  for (char const letter : value) {
    if (letter == '\n') {
      quoted += "\\n";
      continue;
    }
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return key + " = \"" + quoted + '"';
}

}  // namespace yolohpc::cli
