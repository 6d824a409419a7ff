#include "yolohpc/cli/options.hpp"

#include <cassert>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "config_file.hpp"
#include "value_check.hpp"

namespace yolohpc::cli {
namespace {

using base::ExitCode;
using Json = nlohmann::ordered_json;

// For values that were checked when they came in: a failure here is a bug of the caller.
[[noreturn]] void fail_kind(std::string_view name, std::string const& text, char const* wanted) {
  base::fail(ExitCode::failure, "--", name, " is '", text, "' and was read as ", wanted,
             ". This is a bug in yolohpc; please report it.");
}

Json json_value(Option const& option, std::string const& text) {
  if (option.kind == Kind::on_off) return text == "on";
  if (is_word_of(option, text)) return text;
  if (option.kind == Kind::integer) return to_integer(text).value();
  if (option.kind == Kind::number) return to_number(text).value();
  return text;
}

}  // namespace

Environment process_environment() {
  Environment found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view const text(*entry);
    auto const equals = text.find('=');
    if (!text.starts_with("YOLOHPC_") || equals == text.npos) continue;
    found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

std::string read_config_file(std::string const& path) {
  try {
    return base::read_text_file(path);
  } catch (base::Error const& error) {
    base::fail(ExitCode::usage, "--config: ", error.what());
  }
}

ParsedOptions::ParsedOptions(Table const& table, std::string command)
    : table_(&table), command_(std::move(command)) {
  for (auto const* option : table.options_of(command_)) {
    values_[std::string(option->name)] = {std::string(option->default_text), Source::default_value};
  }
}

ParsedOptions::Value const& ParsedOptions::at(std::string_view name) const {
  auto const found = values_.find(name);
  YOLOHPC_CHECK(found != values_.end(), "command ", command_, " has no option --", name,
                ". This is a bug in yolohpc; please report it.");
  return found->second;
}

Option const& ParsedOptions::option(std::string_view name) const {
  at(name);
  return *table_->find_option(command_, name);
}

template <>
std::string ParsedOptions::get<std::string>(std::string_view name) const {
  return at(name).text;
}

template <>
bool ParsedOptions::get<bool>(std::string_view name) const {
  if (option(name).kind != Kind::on_off) fail_kind(name, at(name).text, "on or off");
  return at(name).text == "on";
}

template <>
std::int64_t ParsedOptions::get<std::int64_t>(std::string_view name) const {
  auto const value = optional_integer(name);
  if (!value) fail_kind(name, at(name).text, "a whole number");
  return *value;
}

template <>
int ParsedOptions::get<int>(std::string_view name) const {
  auto const value = get<std::int64_t>(name);
  YOLOHPC_CHECK_AS(ExitCode::usage, value == static_cast<int>(value), "--", name, " is ", value,
                   ", which is too large. Give a number below 2147483648.");
  return static_cast<int>(value);
}

template <>
double ParsedOptions::get<double>(std::string_view name) const {
  auto const value = optional_number(name);
  if (!value) fail_kind(name, at(name).text, "a number");
  return *value;
}

std::optional<std::int64_t> ParsedOptions::optional_integer(std::string_view name) const {
  if (option(name).kind != Kind::integer) fail_kind(name, at(name).text, "a whole number");
  return to_integer(at(name).text);
}

std::optional<double> ParsedOptions::optional_number(std::string_view name) const {
  auto const kind = option(name).kind;
  if (kind != Kind::number && kind != Kind::integer) fail_kind(name, at(name).text, "a number");
  return to_number(at(name).text);
}

std::optional<SizeRange> ParsedOptions::optional_size_range(std::string_view name) const {
  if (option(name).kind != Kind::size_range) fail_kind(name, at(name).text, "LO:HI:STEP");
  return to_size_range(at(name).text);
}

bool ParsedOptions::has(std::string_view name) const {
  return !at(name).text.empty();
}

Source ParsedOptions::source(std::string_view name) const {
  return at(name).source;
}

void ParsedOptions::resolve(std::string_view name, std::string const& text) {
  auto const checked = checked_value(option(name), text, "resolved");
  values_.find(name)->second.text = checked;
}

std::string ParsedOptions::to_config_text() const {
  std::string text = base::join("# ", table_->program, command_.empty() ? "" : " ", command_,
                                ": the configuration in force. Read it again with --config.\n");
  std::string_view group;
  for (auto const* option : table_->options_of(command_)) {
    if (option->is_one_shot) continue;
    if (option->group != group) text += base::join("\n# ", option->group, "\n");
    group = option->group;
    std::string const name(option->name);
    text += config_line(name, at(name).text) + '\n';
  }
  return text;
}

std::string ParsedOptions::to_json() const {
  Json json = Json::object();
  for (auto const* option : table_->options_of(command_)) {
    if (option->is_one_shot) continue;
    json[std::string(option->name)] = json_value(*option, at(option->name).text);
  }
  return json.dump();
}

}  // namespace yolohpc::cli
