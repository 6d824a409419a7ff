// TensorBoard's own reader finds in an event file what was written.
#include <gtest/gtest.h>

#include "yolohpc/base/files.hpp"
#include "yolohpc/monitor/tensorboard.hpp"

#include "support/golden.hpp"

namespace yolohpc::monitor {
namespace {

constexpr char reader[] = R"(
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    print(tag, [(e.step, e.value) for e in events.Scalars(tag)])
)";

TEST(TensorBoardPeer, ReadsTagsStepsAndValues) {
  if (testing::run_command("python3 -c 'import tensorboard'").status != 0) {
    GTEST_SKIP() << "skipped: python3 has no tensorboard";
  }
  testing::TemporaryFolder const folder;
  TensorBoardWriter writer({.folder = folder.path(), .host = "peer"});
  writer.write(1, {{"train/box_loss", 1.5}, {"lr", 0.25}});
  writer.write(200, {{"train/box_loss", 0.75}});
  auto const script = folder.path() / "read.py";
  base::write_file_atomically(script, std::string_view(reader));
  auto const result = testing::run_command("python3 " + script.string() + " " +
                                           writer.file().string() + " 2>/dev/null");
  EXPECT_EQ(result.output, "lr [(1, 0.25)]\ntrain/box_loss [(1, 1.5), (200, 0.75)]\n");
}

}  // namespace
}  // namespace yolohpc::monitor
