// The form of configuration files: `key = value` lines.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace yolohpc::cli {

struct ConfigLine {
  std::string key;
  std::string value;
  int line = 0;  ///< from 1
};

/// Reads `key = value` lines. Empty lines and lines that begin with # are skipped; # after a blank
/// begins a comment; a value in double quotes is taken as it is, with \" \\ and \n for a quote, a
/// backslash and a line end. Underscores in keys count as dashes. \param origin  named in messages
/// \throws Error (usage)  a line without =, without a key, or with a quote that does not end
std::vector<ConfigLine> read_config_text(std::string const& text, std::string const& origin);

/// `key = value`, quoted where the reader needs it.
std::string config_line(std::string const& key, std::string const& value);

}  // namespace yolohpc::cli
