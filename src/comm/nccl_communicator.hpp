// The NCCL communicator over any NcclBackend.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nccl_backend.hpp"

namespace yolohpc::comm {

struct NcclLimits {
  double timeout_s = 600;
  double grace_s = 10;  ///< between the end of NCCL and last_resort
  double watch_interval_s = 0.1;
  /// Ends the job with this text when the caller is stuck.
  std::function<void(std::string const& text)> last_resort = {};
};

/// As make_nccl_communicator, for the ranks of `host`.
std::unique_ptr<Communicator> make_nccl_communicator_over(std::unique_ptr<NcclBackend> backend,
                                                          Communicator& host, NcclLimits limits);

}  // namespace yolohpc::comm
