#include "yolohpc/checkpoint/file_size_signal.hpp"

#include <csignal>

namespace yolohpc::checkpoint {

void ignore_file_size_signal() {
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace yolohpc::checkpoint
