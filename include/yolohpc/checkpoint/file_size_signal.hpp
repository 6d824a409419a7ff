// What a process must do so that a file-size limit is an error and not its death.
#pragma once

namespace yolohpc::checkpoint {

/// Ignores SIGXFSZ, so that a write past `ulimit -f` returns EFBIG instead of ending the process.
/// mpirun resets an inherited "ignore", so each rank's main calls this itself.
void ignore_file_size_signal();

}  // namespace yolohpc::checkpoint
