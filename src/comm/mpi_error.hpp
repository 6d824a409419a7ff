// Turns the return code of an MPI call into an Error with the library's own text.
#pragma once

namespace yolohpc::comm {

/// \param code  what the call returned
/// \param call  its name, such as "MPI_Iallreduce"
/// \throws Error  communication, unless code is MPI_SUCCESS
void check_mpi(int code, char const* call);

}  // namespace yolohpc::comm
