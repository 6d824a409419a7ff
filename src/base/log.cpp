#include "yolohpc/base/log.hpp"

namespace yolohpc::base {

void Log::print(Level level, std::string const& text) {
  std::string line;
  if (level == Level::warning) line = "warning: ";
  if (level == Level::error) line = "error: ";
  line += text;
  line += '\n';
  std::FILE* const stream = level == Level::info ? settings_.out : settings_.err;
  std::lock_guard const lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), stream);
  std::fflush(stream);
}

}  // namespace yolohpc::base
