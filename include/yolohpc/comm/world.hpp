// World: MPI from start to end, and where each rank of the job runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/launch.hpp"

namespace yolohpc::comm {

struct WorldSettings {
  LoneProcess lone = LoneProcess::refuse_if_launched;
  double timeout_s = 600;  ///< for the steps of start and end in which all ranks take part; above 0
};

/// Starts MPI with full thread support and ends it. One object per process, made before any
/// Communicator and destroyed after the last. Where MPI runs already (a test program started it),
/// it is used and left running.
///
/// Destruction while an exception is on its way does not end MPI, since peers may wait in a
/// collective and MPI_Finalize would wait with them: whoever catches the exception calls
/// World::abort.
class World {
 public:
  /// All ranks of the job pass here. A rank that waits longer than the time-out in MPI_Init, in the
  /// split by host or in MPI_Finalize prints a message and ends its process with exit code 4.
  /// \param argc, argv  of main; MPI may take its own arguments out
  /// \throws Error  usage: timeout_s is not above 0; communication: MPI has no full thread support,
  /// one of its
  ///                calls fails, or launcher and MPI disagree (see check_launch)
  World(int& argc, char**& argv, WorldSettings settings);
  explicit World(WorldSettings settings);
  World() : World(WorldSettings{}) {}
  ~World();
  World(World const&) = delete;
  World& operator=(World const&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_root() const { return rank_ == 0; }
  /// Rank among the processes that share this host's memory (MPI_Comm_split_type), and their
  /// number.
  int local_rank() const { return local_ranks_[rank_]; }
  int local_size() const { return local_size_; }
  std::string const& host() const { return hosts_[rank_]; }
  /// Host name and local rank of every rank, by rank: (size).
  std::vector<std::string> const& hosts() const { return hosts_; }
  std::vector<int> const& local_ranks() const { return local_ranks_; }
  /// What check_launch found; rank 0 prints its warnings.
  LaunchReport const& launch() const { return launch_; }
  /// One line that names the MPI library in use and its version.
  static std::string mpi_library();

  /// Ends all ranks of the job through MPI_Abort; the launcher returns `code`. Without a running
  /// MPI, or if MPI_Abort has not ended the process after 10 s, only this process ends, with the
  /// same code. Callable from any thread; no destructor runs.
  [[noreturn]] static void abort(base::ExitCode code);

 private:
  void start(int* argc, char*** argv);
  void find_places();

  WorldSettings settings_;
  bool owns_mpi_ = false;
  int exceptions_at_start_ = 0;
  int rank_ = 0;
  int size_ = 1;
  int local_size_ = 1;
  std::vector<int> local_ranks_;
  std::vector<std::string> hosts_;
  LaunchReport launch_;
};

}  // namespace yolohpc::comm
