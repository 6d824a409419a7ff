#include "yolohpc/base/error.hpp"
#include "yolohpc/cli/options.hpp"

namespace yolohpc::cli {
namespace {

using base::ExitCode;
using base::fail;
using Words = std::vector<std::string>;

std::string command_list(Table const& table) {
  std::string text;
  for (auto const& command : table.commands) {
    text += base::join(text.empty() ? "" : ", ", command.name);
  }
  return text;
}

[[noreturn]] void fail_command(Table const& table, std::string const& word) {
  Words names;
  for (auto const& command : table.commands) names.emplace_back(command.name);
  fail(ExitCode::usage, table.program, " has no command '", word, "'; the nearest is '",
       nearest(word, names), "'. Commands: ", command_list(table), ".");
}

// Options without a command. Returns how many words were used.
std::size_t read_top_level(Table const& table, Words const& words, std::size_t at,
                           Invocation& result) {
  auto const& word = words[at];
  if (word == "--help" || word == "-h") {
    result.wants_help = true;
    return 1;
  }
  if (word == "--version") {
    result.wants_version = true;
    return 1;
  }
  if (word.starts_with("--json=")) {
    result.json = word.substr(sizeof "--json=" - 1);
    return 1;
  }
  if (word == "--json") {
    YOLOHPC_CHECK_AS(ExitCode::usage, at + 1 < words.size(),
                     "--json needs a file name, or - for standard output.");
    result.json = words[at + 1];
    return 2;
  }
  fail(ExitCode::usage, word, " is not known before a command; the nearest option is ",
       nearest(word, {"--help", "--version", "--json"}),
       ". Options of a command stand behind it: ", table.program, " COMMAND ", word, ".");
}

}  // namespace

Invocation read_invocation(Table const& table, Words const& words) {
  Invocation result;
  std::size_t at = 0;
  while (at < words.size() && words[at].starts_with("-")) {
    at += read_top_level(table, words, at, result);
  }
  if (at < words.size() && words[at] == "help") {
    result.wants_help = true;
    ++at;
  }
  if (at == words.size()) {
    YOLOHPC_CHECK_AS(ExitCode::usage, result.wants_help || result.wants_version, table.program,
                     " needs a command: ", command_list(table), ". See ", table.program,
                     " --help.");
    return result;
  }
  if (table.find_command(words[at]) == nullptr) fail_command(table, words[at]);
  result.command = words[at];
  result.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
  return result;
}

}  // namespace yolohpc::cli
