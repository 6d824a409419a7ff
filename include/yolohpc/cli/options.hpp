// Options of a command: from the command line, the environment, a configuration file and defaults.
//
// Precedence, strongest first: command line, YOLOHPC_* variables, --config FILE, defaults.
// Everything here is a function of its arguments, so that it can be tested without a process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yolohpc/cli/option_table.hpp"

namespace yolohpc::cli {

/// Where a value comes from, weakest first.
enum class Source { default_value, config_file, environment, command_line };

/// The variables that begin with YOLOHPC_, with their full names.
using Environment = std::map<std::string, std::string>;
Environment process_environment();

/// LO:HI:STEP of --multi-scale, pixels.
struct SizeRange {
  std::int64_t low_px = 0;
  std::int64_t high_px = 0;
  std::int64_t step_px = 0;
  bool operator==(SizeRange const&) const = default;
};

/// The checked options of one command. Every option of the command has a value of its kind and
/// range.
///
/// The getters assert that the command has the option and that the kind fits: a mistake there is a
/// bug.
class ParsedOptions {
 public:
  struct Value {
    std::string text;
    Source source = Source::default_value;
  };

  ParsedOptions(Table const& table, std::string command);

  std::string const& command() const { return command_; }
  /// Words without dashes, such as `step` in `bench step`.
  std::vector<std::string> const& positionals() const { return positionals_; }

  /// T: bool (on_off), std::int64_t or int (integer), double (number or integer), std::string (any
  /// kind). A value that is a word (`auto`, `off`) where a number is asked for is a bug: ask
  /// optional_* there.
  template <typename T>
  T get(std::string_view name) const;
  /// Empty when the value is a word such as `auto`.
  std::optional<std::int64_t> optional_integer(std::string_view name) const;
  std::optional<double> optional_number(std::string_view name) const;
  /// Empty when the value is a word such as `off`.
  std::optional<SizeRange> optional_size_range(std::string_view name) const;

  /// True when the value is not empty.
  bool has(std::string_view name) const;
  /// True when someone gave the value: on the command line, in a variable or in the configuration
  /// file.
  bool was_set(std::string_view name) const { return source(name) != Source::default_value; }
  Source source(std::string_view name) const;

  /// Puts the value that `auto` turned into in the place of `name`, keeping its source.
  /// \throws Error (usage)  the text is no value of this option
  void resolve(std::string_view name, std::string const& text);

  /// The configuration in the form that --config reads: `key = value` lines under comments that
  /// name the groups; options that concern one call only (--config, --json, --help, ...) are left
  /// out. Reading it back gives the same values.
  std::string to_config_text() const;
  /// One JSON object: numbers, booleans and texts by kind; a value that is a word stays a text.
  std::string to_json() const;

  /// What the user should hear, such as a YOLOHPC_ variable that nothing reads. Not errors.
  std::vector<std::string> const& warnings() const { return warnings_; }
  bool wants_help() const { return wants_help_; }
  bool wants_version() const { return wants_version_; }

 private:
  friend class Parser;
  Value const& at(std::string_view name) const;
  Option const& option(std::string_view name) const;

  Table const* table_;
  std::string command_;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> positionals_;
  std::vector<std::string> warnings_;
  bool wants_help_ = false;
  bool wants_version_ = false;
};

/// Reads a file's text; replaced in tests.
using ReadText = std::function<std::string(std::string const& path)>;
std::string read_config_file(std::string const& path);

/// Parses the words after the command.
///
/// `--name value` and `--name=value` are the same; a name is never guessed from its beginning; a
/// value may begin with a dash when it is a number. An option given twice is an error. With --help
/// or --version nothing is missing. A configuration key or variable that belongs to another command
/// is left alone.
///
/// \param arguments    the words after the command
/// \param environment  YOLOHPC_* variables: YOLOHPC_WARMUP_EPOCHS for --warmup-epochs
/// \throws Error (usage)  unknown name (names the nearest), wrong kind, out of range, missing,
/// given twice,
///                        not available in this build, a configuration file that cannot be read;
///                        says the option, the value seen, where it came from and what is allowed
ParsedOptions parse(Table const& table, std::string const& command,
                    std::vector<std::string> const& arguments, Environment const& environment,
                    ReadText const& read_config = read_config_file);
/// The same for the table of yolohpc.
ParsedOptions parse(std::string const& command, std::vector<std::string> const& arguments,
                    Environment const& environment);

/// The first word of the command line, and the words after it.
struct Invocation {
  std::string command;  ///< empty when only top-level options were given
  std::vector<std::string> arguments;
  bool wants_help = false;     ///< `yolohpc --help`, `yolohpc help`
  bool wants_version = false;  ///< `yolohpc --version`
  std::string json;  ///< FILE of `--version --json FILE`, "-" for standard output, "" for none
};
/// \param words  the command line without the program's name
/// \throws Error (usage)  no command, or an unknown one (names the nearest)
Invocation read_invocation(Table const& table, std::vector<std::string> const& words);

/// The commands with one line each, and where to read on.
std::string top_level_help(Table const& table);
/// Usage, options by group with kind, unit, default and what is allowed, and an example.
std::string command_help(Table const& table, std::string const& command);

/// The candidate of smallest edit distance to `word`, the first of equals; "" when there are none.
/// Dashes, underscores and case do not count, and a common beginning makes a word near.
std::string nearest(std::string_view word, std::vector<std::string> const& candidates);

}  // namespace yolohpc::cli
