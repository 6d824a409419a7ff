#include <map>
#include <sstream>

#include <boost/program_options.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/cli/options.hpp"

#include "boost_description.hpp"
#include "value_check.hpp"

namespace yolohpc::cli {
namespace {

namespace po = boost::program_options;

constexpr unsigned line_columns = 100;
constexpr unsigned description_columns = 56;

std::string_view form_of(Kind kind) {
  switch (kind) {
    case Kind::on_off:
      return "on|off";
    case Kind::integer:
      return "N";
    case Kind::number:
      return "X";
    case Kind::size_range:
      return "LO:HI:STEP";
    case Kind::text:
      return "TEXT";
    case Kind::choice:
    case Kind::action:
      break;
  }
  return {};
}

std::string placeholder_of(Option const& option) {
  if (!option.placeholder.empty()) return std::string(option.placeholder);
  std::string text(form_of(option.kind));
  for (auto const& word : option.words) text += base::join(text.empty() ? "" : "|", word);
  return text;
}

// Boost takes ownership.
po::value_semantic* semantic_of(Option const& option) {
  constexpr bool takes_no_value = true;
  if (option.kind == Kind::action) return new po::untyped_value(takes_no_value);
  auto* value = po::value<std::string>()->value_name(placeholder_of(option));
  if (!option.default_text.empty()) value->default_value(std::string(option.default_text));
  return value;
}

std::string description_of(Option const& option) {
  auto const range = range_text(option);
  auto const joint = option.unit.empty() || range.empty() ? "" : "; ";
  std::string text(option.help);
  if (!option.unit.empty() || !range.empty()) {
    text += base::join(" [", option.unit, joint, range, "]");
  }
  if (!option.is_implemented) text += "; NOT AVAILABLE YET, only the default";
  return text;
}

std::string usage_line(Table const& table, Command const& command) {
  std::string text =
      base::join("usage: ", table.program, command.name.empty() ? "" : " ", command.name);
  for (auto const& word : command.positionals) {
    std::string choices;
    for (auto const& choice : word.words) choices += base::join(choices.empty() ? "" : "|", choice);
    auto const shown = choices.empty() ? std::string(word.name) : choices;
    text += word.is_required ? base::join(" ", shown) : base::join(" [", shown, "]");
  }
  for (auto const& name : command.required) {
    text += base::join(" --", name, " ", table.find_option(command.name, name)->placeholder);
  }
  return text + " [options]\n";
}

}  // namespace

po::options_description boost_description(Table const& table, std::string const& command) {
  std::vector<std::string_view> order;
  std::map<std::string_view, po::options_description> groups;
  for (auto const* option : table.options_of(command)) {
    auto const at = groups.find(option->group);
    if (at == groups.end()) {
      order.push_back(option->group);
      groups.emplace(option->group, po::options_description(std::string(option->group),
                                                            line_columns, description_columns));
    }
    groups.at(option->group)
        .add_options()(std::string(option->name).c_str(), semantic_of(*option),
                       description_of(*option).c_str());
  }
  po::options_description all(line_columns, description_columns);
  for (auto const& group : order) all.add(groups.at(group));
  return all;
}

std::string top_level_help(Table const& table) {
  std::ostringstream text;
  text << table.program << ": " << table.summary << "\n\nusage: " << table.program
       << " COMMAND [options]\n\n";
  std::size_t width = 0;
  for (auto const& command : table.commands) width = std::max(width, command.name.size());
  for (auto const& command : table.commands) {
    text << "  " << command.name << std::string(width - command.name.size() + 3, ' ')
         << command.summary << '\n';
  }
  text << "\n'" << table.program << " COMMAND --help' shows the options of a command, '"
       << table.program << " --version' the build\n(with --json FILE as JSON).\n"
       << "Exit codes: 0 done, 2 usage, 3 bad data, 4 communication, 5 diverged, 75 stopped early "
          "with a\n"
       << "checkpoint saved: start the same command again.\n";
  return text.str();
}

std::string command_help(Table const& table, std::string const& name) {
  auto const* command = table.find_command(name);
  YOLOHPC_CHECK(command != nullptr, table.program, " has no command '", name,
                "'. This is a bug; please report it.");
  std::ostringstream text;
  text << usage_line(table, *command) << '\n' << command->summary << '\n';
  if (!command->example.empty()) text << "example: " << command->example << '\n';
  text << boost_description(table, name);
  text << "\nValues come from the command line, ";
  if (table.reads_environment) {
    text << "else from variables (YOLOHPC_WARMUP_EPOCHS for --warmup-epochs),\n";
  }
  text << "else from the file of --config, else from the defaults shown as (=...).\n";
  return text.str();
}

}  // namespace yolohpc::cli
