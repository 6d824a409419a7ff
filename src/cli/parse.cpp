#include <algorithm>
#include <set>

#include <boost/program_options.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/cli/options.hpp"

#include "boost_description.hpp"
#include "config_file.hpp"
#include "value_check.hpp"

namespace yolohpc::cli {
namespace {

namespace po = boost::program_options;
using base::ExitCode;
using base::fail;
using base::join;

using Words = std::vector<std::string>;

// Variables that begin like options and are none: settings of builds, tests and site modules.
constexpr std::string_view control_variables[] = {
    "YOLOHPC_BIN_DIR", "YOLOHPC_BUILD_DIR", "YOLOHPC_CHECKPOINT", "YOLOHPC_CUDA",
    "YOLOHPC_DIR",     "YOLOHPC_HOME",      "YOLOHPC_NATIVE",     "YOLOHPC_PCH",
    "YOLOHPC_ROOT",    "YOLOHPC_SANITIZE",  "YOLOHPC_SHARED_DIR", "YOLOHPC_SOURCE_DIR",
    "YOLOHPC_VERSION", "YOLOHPC_WERROR"};
constexpr std::string_view control_prefixes[] = {"YOLOHPC_DEPS", "YOLOHPC_GOLDEN_", "YOLOHPC_TEST",
                                                 "YOLOHPC_TORCH"};

bool is_control_variable(std::string_view name) {
  return std::find(std::begin(control_variables), std::end(control_variables), name) !=
             std::end(control_variables) ||
         std::any_of(std::begin(control_prefixes), std::end(control_prefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string variable_of(std::string_view option) {
  std::string name = "YOLOHPC_";
  for (char const letter : option) {
    name +=
        letter == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return name;
}

std::string with_dashes(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

// Commands other than `command` that have the option.
Words commands_with(Table const& table, std::string_view name) {
  Words found;
  for (auto const& command : table.commands) {
    if (table.find_option(command.name, name) != nullptr) found.emplace_back(command.name);
  }
  return found;
}

std::string list(Words const& words) {
  std::string text;
  for (auto const& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

po::option make_option(std::string const& name, std::string const& value) {
  po::option option(name, {value});
  option.original_tokens = {"--" + name, value};
  return option;
}

}  // namespace

class Parser {
 public:
  Parser(Table const& table, std::string const& command)
      : table_(table), description_(boost_description(table, command)), result_(table, command) {}

  void read_arguments(Words const& arguments) {
    auto const parsed =
        po::command_line_parser(arguments)
            .options(description_)
            .style(po::command_line_style::allow_long | po::command_line_style::long_allow_next)
            .extra_style_parser([this](Words& words) { return take_option(words); })
            .run();
    std::set<std::string> seen;
    for (auto const& option : parsed.options) {
      if (option.string_key.empty()) {
        result_.positionals_.insert(result_.positionals_.end(), option.value.begin(),
                                    option.value.end());
        continue;
      }
      YOLOHPC_CHECK_AS(ExitCode::usage, seen.insert(option.string_key).second, "--",
                       option.string_key, " is given twice, the second time as '",
                       option.value.front(), "'. Leave one out.");
    }
    keep(parsed, Source::command_line, "from the command line");
  }

  void read_environment(Environment const& environment) {
    std::map<std::string, std::string> known;
    for (auto const& option : table_.options) {
      if (option.kind == Kind::action) continue;
      known[variable_of(option.name)] = std::string(option.name);
    }
    for (auto const& [variable, value] : environment) {
      auto const found = known.find(variable);
      if (found == known.end()) {
        if (!is_control_variable(variable)) fail_variable(variable, value, known);
        continue;
      }
      if (table_.find_option(result_.command_, found->second) == nullptr) continue;
      po::parsed_options parsed(&description_);
      parsed.options.push_back(make_option(found->second, value));
      keep(parsed, Source::environment, "from the variable " + variable);
    }
  }

  void read_config(ReadText const& read_text) {
    auto const path = value_of("config");
    if (path.empty()) return;
    std::map<std::string, int> seen;
    Words foreign;
    for (auto const& line : read_config_text(read_text(path), path)) {
      auto const origin = join("from ", path, ", line ", line.line);
      auto const [first, is_new] = seen.emplace(line.key, line.line);
      YOLOHPC_CHECK_AS(ExitCode::usage, is_new, path, ": '", line.key, "' stands in line ",
                       first->second, " and again in line ", line.line, ". Leave one out.");
      auto const* option = table_.find_option(result_.command_, line.key);
      if (option == nullptr) {
        if (commands_with(table_, line.key).empty()) fail_name(line.key, origin);
        foreign.push_back(line.key);
        continue;
      }
      YOLOHPC_CHECK_AS(ExitCode::usage, !option->is_one_shot, "'", line.key, "' (", origin,
                       ") concerns a single call. Give it on the command line.");
      po::parsed_options parsed(&description_);
      parsed.options.push_back(make_option(line.key, line.value));
      keep(parsed, Source::config_file, origin);
    }
    if (foreign.empty()) return;
    result_.warnings_.push_back(join(path, ": ", foreign.size(),
                                     " keys of other commands are not used by ", result_.command_,
                                     ": ", list(foreign), "."));
  }

  ParsedOptions finish() {
    for (auto& [name, value] : result_.values_) {
      auto const* option = table_.find_option(result_.command_, name);
      value.text = value_of(name);
      if (auto const at = origins_.find(name); at != origins_.end()) {
        value.source = at->second.source;
        check(*option, value, at->second.text);
      }
    }
    result_.wants_help_ = origins_.contains("help");
    result_.wants_version_ = origins_.contains("version");
    if (!result_.wants_help_ && !result_.wants_version_) check_complete();
    return std::move(result_);
  }

 private:
  struct Origin {
    Source source;
    std::string text;
  };

  // One option from the front of `words`, with its value. Boost's own parser would guess names from
  // their beginnings, and would take the value after an option that may stand alone for a word of
  // its own.
  std::vector<po::option> take_option(Words& words) const {
    std::string const token = words.front();
    if (token == "-h") return consume(words, 1, po::option("help", {}));
    bool const is_option = token.size() > 1 && token[0] == '-' && !to_number(token);
    if (!is_option) return {};
    auto const equals = token.find('=');
    auto const name = with_dashes(token.substr(
        token.starts_with("--") ? 2 : 1,
        equals == token.npos ? token.npos : equals - (token.starts_with("--") ? 2 : 1)));
    auto const* option = table_.find_option(result_.command_, name);
    if (option == nullptr || !token.starts_with("--")) fail_name(name, "from the command line");
    if (option->kind == Kind::action) {
      YOLOHPC_CHECK_AS(ExitCode::usage, equals == token.npos, "--", name, " takes no value, '",
                       token.substr(equals + 1), "' was given. Leave it out.");
      return consume(words, 1, po::option(name, {}));
    }
    if (equals != token.npos) return consume(words, 1, make_option(name, token.substr(equals + 1)));
    bool const has_next = words.size() > 1;
    if (option->kind == Kind::on_off) {
      bool const next_is_value = has_next && on_off_value(words[1]).has_value();
      return next_is_value ? consume(words, 2, make_option(name, words[1]))
                           : consume(words, 1, make_option(name, "on"));
    }
    YOLOHPC_CHECK_AS(ExitCode::usage, has_next && !words[1].starts_with("--"), "--", name,
                     " needs a value, and ",
                     has_next ? "'" + words[1] + "' follows" : "nothing follows",
                     ". Allowed: ", value_text(*option), ".");
    return consume(words, 2, make_option(name, words[1]));
  }

  static std::vector<po::option> consume(Words& words, std::ptrdiff_t count, po::option option) {
    words.erase(words.begin(), words.begin() + count);
    return {std::move(option)};
  }

  static std::string value_text(Option const& option) {
    auto const allowed = allowed_text(option);
    return allowed.empty() ? "any text; --NAME=VALUE for one that begins with --" : allowed;
  }

  // The strongest source is stored first: a later store does not replace what is there.
  void keep(po::parsed_options const& parsed, Source source, std::string const& origin) {
    po::store(parsed, values_);
    for (auto const& option : parsed.options) {
      if (!option.string_key.empty()) origins_.emplace(option.string_key, Origin{source, origin});
    }
  }

  std::string value_of(std::string const& name) const {
    auto const& value = values_[name];
    return value.empty() ? std::string() : value.as<std::string>();
  }

  static void check(Option const& option, ParsedOptions::Value& value, std::string const& origin) {
    bool const clears = value.text.empty() && option.default_text.empty();
    if (!clears) value.text = checked_value(option, value.text, origin);
    YOLOHPC_CHECK_AS(ExitCode::usage, option.is_implemented || value.text == option.default_text,
                     "--", option.name, " is '", value.text, "' (", origin,
                     "), which is not available in this version of yolohpc. Leave it out",
                     option.default_text.empty() ? "" : join(": it is ", option.default_text), ".");
  }

  void check_complete() const {
    auto const& command = *table_.find_command(result_.command_);
    auto const& given = result_.positionals_;
    for (std::size_t i = 0; i < command.positionals.size(); ++i) {
      auto const& wanted = command.positionals[i];
      auto const words = Words(wanted.words.begin(), wanted.words.end());
      if (i >= given.size()) {
        YOLOHPC_CHECK_AS(ExitCode::usage, !wanted.is_required, usage_name(), " needs ", wanted.name,
                         words.empty() ? "" : ": one of " + list(words), ". See ", usage_name(),
                         " --help.");
        return;
      }
      bool const is_known =
          words.empty() || std::find(words.begin(), words.end(), given[i]) != words.end();
      YOLOHPC_CHECK_AS(ExitCode::usage, is_known, usage_name(), " has no '", given[i],
                       "'; the nearest is '", nearest(given[i], words), "'. Known: ", list(words),
                       ".");
    }
    YOLOHPC_CHECK_AS(ExitCode::usage, given.size() <= command.positionals.size(), usage_name(),
                     " does not know what to do with '", given[command.positionals.size()],
                     "'. Values stand behind an option, as in --name value; see ", usage_name(),
                     " --help.");
    for (auto const& name : command.required) {
      auto const* option = table_.find_option(command.name, name);
      YOLOHPC_CHECK_AS(ExitCode::usage, result_.has(name), usage_name(), " needs --", name, " ",
                       option->placeholder, " (", option->help, "). See ", usage_name(),
                       " --help.");
    }
  }

  std::string usage_name() const {
    return join(table_.program, result_.command_.empty() ? "" : " ", result_.command_);
  }

  [[noreturn]] void fail_name(std::string const& name, std::string const& origin) const {
    auto const others = commands_with(table_, name);
    if (!others.empty()) {
      fail(ExitCode::usage, "--", name, " (", origin, ") is no option of ", usage_name(),
           "; it belongs to ", list(others), ". See ", usage_name(), " --help.");
    }
    Words names;
    for (auto const* option : table_.options_of(result_.command_)) names.emplace_back(option->name);
    fail(ExitCode::usage, "--", name, " (", origin, ") is not known; the nearest option is --",
         nearest(name, names), ". See ", usage_name(), " --help.");
  }

  [[noreturn]] static void fail_variable(std::string const& variable, std::string const& value,
                                         std::map<std::string, std::string> const& known) {
    Words names;
    for (auto const& entry : known) names.push_back(entry.first);
    auto const best = nearest(variable.substr(sizeof "YOLOHPC_" - 1), [&] {
      Words bare;
      for (auto const& name : names) bare.push_back(name.substr(sizeof "YOLOHPC_" - 1));
      return bare;
    }());
    fail(ExitCode::usage, "the environment variable ", variable, " ('", value,
         "') is not known; the nearest one is YOLOHPC_", best,
         ". Rename it, or unset it if it is not meant for yolohpc.");
  }

  Table const& table_;
  po::options_description description_;
  po::variables_map values_;
  std::map<std::string, Origin> origins_;
  ParsedOptions result_;
};

namespace {

bool asks_for_help(Words const& arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](std::string const& word) { return word == "--help" || word == "-h"; });
}

}  // namespace

ParsedOptions parse(Table const& table, std::string const& command, Words const& arguments,
                    Environment const& environment, ReadText const& read_config) {
  YOLOHPC_CHECK(table.find_command(command) != nullptr, table.program, " has no command '", command,
                "'. This is a bug; please report it.");
  Parser parser(table, command);
  // Who asks for help may have the rest wrong.
  if (asks_for_help(arguments)) {
    parser.read_arguments({"--help"});
    return parser.finish();
  }
  parser.read_arguments(arguments);
  if (table.reads_environment) parser.read_environment(environment);
  parser.read_config(read_config);
  return parser.finish();
}

ParsedOptions parse(std::string const& command, Words const& arguments,
                    Environment const& environment) {
  return parse(yolohpc_table(), command, arguments, environment);
}

}  // namespace yolohpc::cli
