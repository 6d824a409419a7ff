// Error, the exit codes, and the checks that throw it.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace yolohpc::base {

/// What the process returns to the shell. The values are part of the user's contract.
enum class ExitCode {
  done = 0,
  failure = 1,         ///< anything that has no code of its own: a failing disk, a bug
  usage = 2,           ///< an option, a setting or a combination of them
  bad_data = 3,        ///< a data set, an image, a shard, a checkpoint
  communication = 4,   ///< MPI, NCCL, a rank that is gone
  diverged = 5,        ///< losses or gradients stayed non-finite
  stopped_early = 75,  ///< a checkpoint is saved: start the same command again
};

/// A failure that a user can meet. The text says what is wrong, the value seen and what to do.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string const& text, ExitCode code = ExitCode::failure)
      : std::runtime_error(text), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// Joins its arguments with operator<<.
template <typename... Parts>
std::string join(Parts const&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

/// Throws Error with exit code `code` and the joined text.
template <typename... Parts>
[[noreturn]] void fail(ExitCode code, Parts const&... parts) {
  throw Error(join(parts...), code);
}

}  // namespace yolohpc::base

/// Throws base::Error with the joined text when `condition` is false, in every build type.
#define YOLOHPC_CHECK(condition, ...) \
  YOLOHPC_CHECK_AS(::yolohpc::base::ExitCode::failure, condition, __VA_ARGS__)

/// The same with an exit code.
#define YOLOHPC_CHECK_AS(code, condition, ...)  \
  do {                                          \
    if (!(condition)) [[unlikely]] {            \
      ::yolohpc::base::fail(code, __VA_ARGS__); \
    }                                           \
  } while (false)
