#include "mpi_error.hpp"

#include <string>

#include <mpi.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::comm {

void check_mpi(int code, char const* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  base::fail(
      base::ExitCode::communication, call, " returned ", code, ": ",
      std::string(text, static_cast<std::size_t>(length)),
      ". A rank or the network is gone; look at the first message of each rank, then start the "
      "job again.");
}

}  // namespace yolohpc::comm
