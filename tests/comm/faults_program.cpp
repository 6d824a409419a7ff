// A job that goes wrong in the way its first argument names. Started by faults.test.cpp.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <ATen/ATen.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace {

using namespace yolohpc;
using comm::ReduceOp;

constexpr auto longer_than_any_test = std::chrono::seconds(100);
constexpr double short_timeout_s = 1;

void say(std::string const& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

struct Collective {
  char const* name;
  std::function<void(comm::Communicator&)> call;
};

std::vector<Collective> collectives() {
  auto const values = at::ones({8});
  auto const bytes = std::make_shared<std::vector<std::byte>>(3);
  return {
      {"all_reduce", [=](auto& c) { c.all_reduce_in_place(values, ReduceOp::sum); }},
      {"async all_reduce", [=](auto& c) { c.all_reduce_async(values, ReduceOp::sum)->wait(); }},
      {"reduce_scatter", [=](auto& c) { c.reduce_scatter(values, ReduceOp::sum); }},
      {"all_gather", [=](auto& c) { c.all_gather(values); }},
      {"broadcast", [=](auto& c) { c.broadcast_in_place(values, 1); }},
      {"barrier", [=](auto& c) { c.barrier(); }},
      {"gather_bytes", [=](auto& c) { c.gather_bytes(*bytes, 0); }},
      {"all_gather_bytes", [=](auto& c) { c.all_gather_bytes(*bytes); }},
      {"broadcast_bytes", [=](auto& c) { c.broadcast_bytes(*bytes, 1); }},
  };
}

// Rank 1 stays away from every collective; rank 0 tells how long each held it and with which text.
void stay_away(comm::World& world) {
  std::vector<std::unique_ptr<comm::Communicator>> communicators;
  for (std::size_t i = 0; i < collectives().size(); ++i) {
    communicators.push_back(comm::make_mpi_communicator(world, {.timeout_s = short_timeout_s}));
  }
  if (world.rank() == 1) std::this_thread::sleep_for(longer_than_any_test);
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    base::Stopwatch const watch;
    std::string text = "no error";
    try {
      collectives()[i].call(*communicators[i]);
    } catch (base::Error const& error) {
      text = error.what();
    }
    say(base::join("CASE ", collectives()[i].name, " | ", watch.elapsed_s(), " | ", text));
    try {
      communicators[i]->barrier();
      if (i != 1) say("CASE broken | 0 | the broken communicator went on");
    } catch (base::Error const&) {
    }
  }
  throw base::Error("all cases tried", base::ExitCode::communication);
}

void throw_on_rank_1(comm::World& world) {
  auto const communicator = comm::make_mpi_communicator(world);
  if (world.rank() == 1) throw base::Error("shard 7 is cut short", base::ExitCode::bad_data);
  communicator->barrier();
}

void raise_on_rank_1(comm::World& world, int signal) {
  auto const communicator = comm::make_mpi_communicator(world, {.timeout_s = 2});
  if (world.rank() == 1) std::raise(signal);
  communicator->all_reduce_async(at::ones({1000}), ReduceOp::sum)->wait();
}

void abort_from_another_thread(comm::World& world) {
  auto const communicator = comm::make_mpi_communicator(world);
  if (world.rank() == 1) std::this_thread::sleep_for(longer_than_any_test);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    communicator->abort();
  });
  try {
    communicator->barrier();
  } catch (...) {
    stopper.join();
    throw;
  }
}

void run(std::string const& mode, int& argc, char**& argv) {
  auto const lone = argc > 2 && std::string(argv[2]) == "--single-process"
                        ? comm::LoneProcess::on_purpose
                        : comm::LoneProcess::refuse_if_launched;
  comm::World world(argc, argv, {.lone = lone, .timeout_s = 2});
  if (mode == "stay-away") stay_away(world);
  if (mode == "throw") throw_on_rank_1(world);
  if (mode == "kill") raise_on_rank_1(world, SIGKILL);
  if (mode == "stop") raise_on_rank_1(world, SIGSTOP);
  if (mode == "abort") abort_from_another_thread(world);
  if (mode == "stop-before-the-end" && world.rank() == 1) std::raise(SIGSTOP);
  say(base::join("rank ", world.rank(), " of ", world.size(), " is through"));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "", argc, argv);
    return 0;
  } catch (base::Error const& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    comm::World::abort(error.code());
  }
}
