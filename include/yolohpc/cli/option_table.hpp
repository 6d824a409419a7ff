// The one table of commands and options: help, checks, configuration file and environment come from
// it.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

namespace yolohpc::cli {

/// What a value looks like.
enum class Kind {
  on_off,      ///< on, off (also true, false, yes, no, 1, 0; the bare option means on)
  integer,     ///< a whole number, or one of `words`
  number,      ///< a finite decimal number, or one of `words`
  text,        ///< anything, or a path
  choice,      ///< one of `words`
  action,      ///< stands alone and has no value (--help, --version)
  size_range,  ///< LO:HI:STEP in pixels, or one of `words`
};

/// One option of one or several commands.
struct Option {
  std::string_view name;  ///< without the dashes
  Kind kind = Kind::text;
  std::string_view default_text = {};  ///< "" for a text without a default
  std::string_view unit = {};          ///< "" when there is none
  std::string_view help = {};
  std::string_view group = {};                  ///< heading in the help text
  std::vector<std::string_view> commands = {};  ///< empty: all
  std::vector<std::string_view> words = {};     ///< allowed words
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool is_open_below = false;         ///< the minimum itself is not allowed
  int multiple_of = 1;                ///< of an integer
  std::string_view placeholder = {};  ///< in the help text, "" for that of the kind
  bool is_implemented = true;         ///< false: only the default is accepted
  bool is_one_shot = false;           ///< concerns a single call: not in the configuration file
};

/// A word on the command line without dashes.
struct Positional {
  std::string_view name;
  std::vector<std::string_view> words = {};  ///< allowed words; empty: any text
  bool is_required = true;
};

struct Command {
  std::string_view name;
  std::string_view summary = {};
  std::vector<Positional> positionals = {};
  std::vector<std::string_view> required = {};  ///< options that have no default and must be given
  std::string_view example = {};
};

/// A program's commands and options: `yolohpc` and the small programs beside it have one each.
struct Table {
  std::string_view program;
  std::string_view summary = {};
  std::vector<Command> commands;
  std::vector<Option> options;
  bool reads_environment = true;  ///< YOLOHPC_* variables; they are those of `yolohpc` itself

  /// nullptr when there is none.
  Command const* find_command(std::string_view name) const;
  /// The option `name` of `command`; nullptr when that command has none of this name.
  Option const* find_option(std::string_view command, std::string_view name) const;
  /// The options of `command`, in the order of the table.
  std::vector<Option const*> options_of(std::string_view command) const;
};

/// --config, --json, --help, --version: every program has them.
std::vector<Option> general_options();

/// The table of `yolohpc`: train, val, eval, predict, export, bench, info, checkpoint.
Table const& yolohpc_table();

}  // namespace yolohpc::cli
