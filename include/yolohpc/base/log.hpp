// Messages to people: one rank speaks for all, or each for itself.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>

#include "yolohpc/base/error.hpp"

namespace yolohpc::base {

enum class Level { info, warning, error };

/// Prints lines for people: information to one stream, warnings and errors to another. Thread-safe;
/// a line is written by one call, so lines of several ranks never mix.
class Log {
 public:
  struct Settings {
    int rank = 0;
    std::string host;
    std::FILE* out = stdout;
    std::FILE* err = stderr;
  };
  Log() : Log(Settings{}) {}
  explicit Log(Settings settings) : settings_(std::move(settings)) {}

  int rank() const { return settings_.rank; }
  std::string const& host() const { return settings_.host; }

  /// All ranks pass here; rank 0 prints.
  template <typename... Parts>
  void root(Level level, Parts const&... parts) {
    if (settings_.rank == 0) print(level, join(parts...));
  }
  /// This rank prints, tagged with rank and host.
  template <typename... Parts>
  void this_rank(Level level, Parts const&... parts) {
    print(level, join("rank ", settings_.rank, settings_.host.empty() ? "" : " on ", settings_.host,
                      ": ", parts...));
  }

 private:
  void print(Level level, std::string const& text);

  Settings settings_;
  std::mutex mutex_;
};

}  // namespace yolohpc::base
