#include "rank_group.hpp"

#include <exception>
#include <utility>

#include "yolohpc/base/error.hpp"

#include "byte_stream.hpp"

namespace yolohpc::data {
namespace {

/// What went wrong on a rank, as bytes: none when all is well.
std::vector<std::byte> outcome_of(std::function<void()> const& action) {
  ByteWriter writer;
  try {
    action();
  } catch (base::Error const& error) {
    writer.put(error.code());
    writer.put(error.what());
  } catch (std::exception const& error) {
    writer.put(base::ExitCode::failure);
    writer.put(error.what());
  }
  return std::move(writer).take();
}

}  // namespace

RankGroup lone_rank() {
  return {.rank = 0, .size = 1, .all_gather = [](std::span<std::byte const> bytes) {
            return std::vector<std::vector<std::byte>>{{bytes.begin(), bytes.end()}};
          }};
}

void run_together(RankGroup const& group, std::function<void()> const& action) {
  auto const outcomes = group.all_gather(outcome_of(action));
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].empty()) continue;
    ByteReader reader(outcomes[rank]);
    auto const code = reader.get<base::ExitCode>();
    std::string const origin = group.size > 1 ? base::join("rank ", rank, ": ") : "";
    throw base::Error(origin + reader.get_text(), code);
  }
}

std::vector<std::byte> bytes_of_root(RankGroup const& group,
                                     std::function<std::vector<std::byte>()> const& make) {
  std::vector<std::byte> bytes;
  run_together(group, [&] {
    if (group.rank == 0) bytes = make();
  });
  return std::move(group.all_gather(bytes).front());
}

std::pair<std::size_t, std::size_t> share_of(std::size_t count, int rank, int size) {
  auto const begin = [&](int place) {
    return count * static_cast<std::size_t>(place) / static_cast<std::size_t>(size);
  };
  return {begin(rank), begin(rank + 1)};
}

}  // namespace yolohpc::data
