#include <gtest/gtest.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/comm/communicator.hpp"

namespace yolohpc::comm {
namespace {

std::vector<std::byte> bytes_of(std::string const& text) {
  auto const* first = reinterpret_cast<std::byte const*>(text.data());
  return {first, first + text.size()};
}

TEST(SingleCommunicator, IsTheIdentity) {
  auto const communicator = make_single_communicator();
  EXPECT_EQ(communicator->size(), 1);
  auto const values = at::arange(6, at::kFloat).reshape({2, 3});
  auto const before = values.clone();
  communicator->all_reduce_in_place(values, ReduceOp::sum);
  communicator->all_reduce_async(values, ReduceOp::max)->wait();
  communicator->broadcast_in_place(values, 0);
  communicator->barrier();
  EXPECT_TRUE(values.equal(before));
  EXPECT_TRUE(communicator->reduce_scatter(values, ReduceOp::sum).equal(before));
  EXPECT_TRUE(communicator->all_gather(values).equal(before));
  auto content = bytes_of("abc");
  communicator->broadcast_bytes(content, 0);
  EXPECT_EQ(content, bytes_of("abc"));
  EXPECT_EQ(communicator->gather_bytes(content, 0),
            std::vector<std::vector<std::byte>>{bytes_of("abc")});
  EXPECT_EQ(communicator->all_gather_bytes(content),
            std::vector<std::vector<std::byte>>{bytes_of("abc")});
}

template <typename Call>
std::string refusal(Call const& call) {
  try {
    call();
  } catch (base::Error const& error) {
    return error.what();
  }
  return "";
}

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST(Communicator, NamesWhatIsWrongWithItsArguments) {
  auto const communicator = make_single_communicator();
  auto const sum = ReduceOp::sum;
  auto const grid = at::zeros({4, 4});
  EXPECT_TRUE(
      has(refusal([&] { communicator->all_reduce_in_place(grid.select(1, 0), sum); }), "gaps"));
  EXPECT_TRUE(
      has(refusal([&] { communicator->all_reduce_in_place(grid.to(at::kBool), sum); }), "Bool"));
  EXPECT_TRUE(
      has(refusal([&] { communicator->all_reduce_in_place(at::Tensor(), sum); }), "undefined"));
  EXPECT_TRUE(has(refusal([&] { communicator->broadcast_in_place(grid, 3); }), "root 3"));
  EXPECT_TRUE(has(refusal([&] { communicator->all_gather(at::scalar_tensor(1)); }), "scalar"));
  EXPECT_TRUE(has(refusal([&] { communicator->all_gather(grid.t()); }), "contiguous"));
  EXPECT_TRUE(has(refusal([&] {
                    communicator->all_gather_into(grid, at::zeros({3, 4}));
                  }),
                  "[3, 4]"));
  EXPECT_TRUE(has(refusal([&] { communicator->reduce_scatter_into(grid.to(at::kInt), grid, sum); }),
                  "Int"));
  auto const line = at::zeros({6});
  EXPECT_TRUE(has(
      refusal([&] { communicator->all_gather_into(line.narrow(0, 0, 4), line.narrow(0, 2, 4)); }),
      "overlaps"));
}

TEST(Communicator, DoesNothingMoreAfterAbort) {
  auto const communicator = make_single_communicator();
  communicator->abort();
  EXPECT_TRUE(has(refusal([&] { communicator->barrier(); }), "aborted"));
}

}  // namespace
}  // namespace yolohpc::comm
