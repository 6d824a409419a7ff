#include "stand_in_nccl.hpp"

#include <chrono>
#include <thread>

#include <ATen/ops/ones.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::testing {

using comm::NcclStatus;
using comm::ReduceOp;
using State = NcclStatus::State;

namespace {

int count(at::Tensor const& tensor) {
  return static_cast<int>(tensor.numel());
}

}  // namespace

comm::DeviceIdentity StandInNccl::identity() {
  return {.bus_id = base::join("stand-in bus ", script_->one_device_for_all ? 0 : rank_),
          .visible_devices = "0"};
}

at::Tensor StandInNccl::make_one() {
  return at::ones({1}, at::kFloat);
}

NcclStatus StandInNccl::make_unique_id(UniqueId& id) {
  if (!script_->unique_id_failure.empty()) return {State::failed, script_->unique_id_failure};
  id.fill(std::byte{42});
  return {};
}

NcclStatus StandInNccl::begin_init(UniqueId const& id, int, int) {
  if (id[7] != std::byte{42}) return {State::failed, "the unique id of rank 0 did not arrive"};
  MPI_Comm_idup(MPI_COMM_WORLD, &mpi_, &init_);
  return {State::in_progress};
}

NcclStatus StandInNccl::state() {
  std::lock_guard const lock(mutex_);
  if (init_ != MPI_REQUEST_NULL) {
    if (!script_->init_failure.empty()) return {State::failed, script_->init_failure};
    int finished = 0;
    if (script_->polls_in_init-- > 0) return {State::in_progress};
    MPI_Test(&init_, &finished, MPI_STATUS_IGNORE);
    return {finished != 0 ? State::done : State::in_progress};
  }
  if (finishing_ && !all_reached()) return {State::in_progress};
  if (script_->collectives > script_->fail_from) return {State::failed, "stand-in: cable pulled"};
  return {};
}

template <typename Post>
NcclStatus StandInNccl::run(at::Tensor sent, Post const& post) {
  std::this_thread::sleep_for(std::chrono::duration<double>(script_->call_blocks_s));
  std::lock_guard const lock(mutex_);
  if (!script_->call_failure.empty()) return {State::failed, script_->call_failure};
  auto const work = work_.emplace_back(std::make_shared<Work>());
  work->sent = std::move(sent);
  int const number = script_->collectives++;
  work->stalls = number >= script_->stall_from || number >= script_->fail_from;
  if (!work->stalls) post(*work);
  return {};
}

NcclStatus StandInNccl::all_reduce(at::Tensor const& values, ReduceOp op) {
  return run({}, [&](Work& work) {
    MPI_Iallreduce(MPI_IN_PLACE, values.data_ptr(), count(values),
                   comm::mpi_type(values.scalar_type()), reductions_.find(values.scalar_type(), op),
                   mpi_, &work.request);
  });
}

NcclStatus StandInNccl::reduce_scatter(at::Tensor const& part, at::Tensor const& values,
                                       ReduceOp op) {
  return run(values.clone(), [&](Work& work) {
    MPI_Ireduce_scatter_block(work.sent.data_ptr(), part.data_ptr(), count(part),
                              comm::mpi_type(values.scalar_type()),
                              reductions_.find(values.scalar_type(), op), mpi_, &work.request);
  });
}

NcclStatus StandInNccl::all_gather(at::Tensor const& whole, at::Tensor const& part) {
  return run(part.clone(), [&](Work& work) {
    auto const type = comm::mpi_type(part.scalar_type());
    MPI_Iallgather(work.sent.data_ptr(), count(part), type, whole.data_ptr(), count(part), type,
                   mpi_, &work.request);
  });
}

NcclStatus StandInNccl::broadcast(at::Tensor const& values, int root) {
  return run({}, [&](Work& work) {
    MPI_Ibcast(values.data_ptr(), count(values), comm::mpi_type(values.scalar_type()), root, mpi_,
               &work.request);
  });
}

bool StandInNccl::all_reached() {
  for (auto const& work : work_) {
    int finished = 0;
    if (!work->stalls) MPI_Test(&work->request, &finished, MPI_STATUS_IGNORE);
    if (finished == 0) return false;
  }
  return true;
}

NcclStatus StandInNccl::begin_finish() {
  finishing_ = true;
  return {State::in_progress};
}

NcclStatus StandInNccl::destroy() {
  ++script_->orderly_ends;
  MPI_Comm_free(&mpi_);
  return {};
}

NcclStatus StandInNccl::abort() {
  ++script_->aborts;
  aborted_ = true;
  return {};
}

void StandInNccl::hold_caller_until(Event const& event) {
  while (!aborted_ && !reached(event)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

StandInNccl::Event StandInNccl::record_own_stream() {
  std::lock_guard const lock(mutex_);
  return work_.back();
}

StandInNccl::Event StandInNccl::record_callers_stream() {
  auto work = std::make_shared<Work>();
  work->stalls = script_->callers_stream_stalls;
  return work;
}

bool StandInNccl::reached(Event const& event) {
  std::lock_guard const lock(mutex_);
  auto& work = *static_cast<Work*>(event.get());
  if (work.stalls) return false;
  int finished = 0;
  MPI_Test(&work.request, &finished, MPI_STATUS_IGNORE);
  return finished != 0;
}

}  // namespace yolohpc::testing
