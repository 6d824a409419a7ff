#include "yolohpc/comm/world.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include <mpi.h>

#include "mpi_error.hpp"
#include "watchdog.hpp"

namespace yolohpc::comm {
namespace {

using base::ExitCode;

constexpr auto abort_grace = std::chrono::seconds(10);

bool mpi_runs() {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return initialised != 0 && finalised == 0;
}

std::string processor_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME + 1> name = {};
  int length = 0;
  check_mpi(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
  return {name.data(), static_cast<std::size_t>(length)};
}

// Blocking calls that have no form with a request cannot be left: past the limit the process ends.
std::function<void()> end_process(std::string const& who, char const* call, double timeout_s) {
  return [=] {
    std::fprintf(
        stderr,
        "error: %s: waited %g s in %s for the other ranks. One of them has died, is stopped or "
        "never started: look at the first message of each rank; raise --comm-timeout if a rank "
        "may take that long.\n",
        who.c_str(), timeout_s, call);
    World::abort(ExitCode::communication);
  };
}

std::vector<std::string> gather_names(std::string const& own, int size) {
  std::array<char, MPI_MAX_PROCESSOR_NAME + 1> name = {};
  own.copy(name.data(), MPI_MAX_PROCESSOR_NAME);
  std::vector<char> all(name.size() * static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(name.data(), static_cast<int>(name.size()), MPI_CHAR, all.data(),
                          static_cast<int>(name.size()), MPI_CHAR, MPI_COMM_WORLD),
            "MPI_Allgather");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < all.size(); i += name.size()) names.emplace_back(&all[i]);
  return names;
}

}  // namespace

World::World(int& argc, char**& argv, WorldSettings settings) : settings_(settings) {
  start(&argc, &argv);
}

World::World(WorldSettings settings) : settings_(settings) {
  start(nullptr, nullptr);
}

World::~World() {
  if (!owns_mpi_ || !mpi_runs() || std::uncaught_exceptions() > exceptions_at_start_) return;
  Watchdog const limit(settings_.timeout_s, end_process(base::join("rank ", rank_, " on ", host()),
                                                        "MPI_Finalize", settings_.timeout_s));
  MPI_Finalize();
}

void World::start(int* argc, char*** argv) {
  YOLOHPC_CHECK_AS(ExitCode::usage, settings_.timeout_s > 0, "the communication time-out is ",
                   settings_.timeout_s, " s; it must be above 0 (--comm-timeout).");
  exceptions_at_start_ = std::uncaught_exceptions();
  auto const environment = launch_environment();
  int provided = MPI_THREAD_SINGLE;
  if (mpi_runs()) {
    check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  } else {
    Watchdog const limit(settings_.timeout_s,
                         end_process("at start", "MPI_Init_thread", settings_.timeout_s));
    check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    owns_mpi_ = true;
  }
  YOLOHPC_CHECK_AS(
      ExitCode::communication, provided >= MPI_THREAD_MULTIPLE, mpi_library(),
      " gives thread level ", provided, ", not MPI_THREAD_MULTIPLE (", MPI_THREAD_MULTIPLE,
      "), which gradient reduction beside the backward pass needs. Use an MPI built with full "
      "thread support, and unset variables that lower it (MPICH_MAX_THREAD_SAFETY, "
      "I_MPI_THREAD_LEVEL_DEFAULT).");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  launch_ = check_launch(size_, environment, settings_.lone);
  find_places();
}

void World::find_places() {
  auto const own_name = processor_name();
  Watchdog const limit(settings_.timeout_s,
                       end_process(base::join("rank ", rank_, " on ", own_name),
                                   "MPI_Comm_split_type", settings_.timeout_s));
  MPI_Comm shared = MPI_COMM_NULL;
  check_mpi(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &shared),
      "MPI_Comm_split_type");
  int local_rank = 0;
  check_mpi(MPI_Comm_rank(shared, &local_rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(shared, &local_size_), "MPI_Comm_size");
  check_mpi(MPI_Comm_free(&shared), "MPI_Comm_free");
  local_ranks_.resize(static_cast<std::size_t>(size_));
  check_mpi(MPI_Allgather(&local_rank, 1, MPI_INT, local_ranks_.data(), 1, MPI_INT, MPI_COMM_WORLD),
            "MPI_Allgather");
  hosts_ = gather_names(own_name, size_);
}

std::string World::mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text = {};
  int length = 0;
  check_mpi(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  std::string const version(text.data(), static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

void World::abort(base::ExitCode code) {
  std::fflush(stdout);
  std::fflush(stderr);
  int const status = static_cast<int>(code);
  std::thread([status] {
    std::this_thread::sleep_for(abort_grace);
    std::_Exit(status);
  }).detach();
  if (mpi_runs()) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace yolohpc::comm
