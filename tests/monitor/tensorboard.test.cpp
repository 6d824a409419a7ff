// Event files: bytes made by hand, the mask, and cutting on resume.
#include "yolohpc/monitor/tensorboard.hpp"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "yolohpc/base/files.hpp"

#include "support/golden.hpp"

namespace yolohpc::monitor {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  for (unsigned const value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// CRC-32C("123456789") = 0xE3069283; rotated right by 15: 0x2507C60D; plus 0xA282EAD8: 0xC78AB0E5.
TEST(MaskedCrc, RotatesAndAdds) {
  EXPECT_EQ(masked_crc(0xE3069283), 0xC78AB0E5u);
}

// Computed by hand from the encoding: wall time 1.0, step 300 (two bytes), one value "a" = 0.5.
TEST(ScalarEvent, HasTheBytesOfTheProtobufEncoding) {
  EXPECT_EQ(scalar_event(1.0, 300, {{"a", 0.5}}),
            bytes_of({0x09, 0,    0,    0, 0,   0, 0, 0xF0, 0x3F,  // 1: fixed64
                      0x10, 0xAC, 0x02,                            // 2: varint 300
                      0x2A, 0x0A,                                  // 5: summary, 10 bytes
                      0x0A, 0x08,                                  //   1: value, 8 bytes
                      0x0A, 0x01, 'a',                             //     1: tag
                      0x15, 0,    0,    0, 0x3F}));                //     2: float 0.5
  EXPECT_EQ(event_step(scalar_event(1.0, 300, {{"a", 0.5}})), 300);
}

TEST(VersionEvent, NamesTheFormat) {
  auto const event = version_event(1.0);
  EXPECT_EQ(event, bytes_of({0x09, 0,   0,   0,   0,   0,   0,   0xF0, 0x3F, 0x1A, 13,  'b',
                             'r',  'a', 'i', 'n', '.', 'E', 'v', 'e',  'n',  't',  ':', '2'}));
  EXPECT_EQ(event_step(event), 0);
}

// Length 9 and its masked checksum, the text, and the masked checksum from above. CRC-32C of the
// length bytes 09 00 00 00 00 00 00 00 was computed bit by bit with the polynomial 0x82F63B78:
// 0x872FCB77.
TEST(RecordFrame, PutsChecksumsAroundTheLengthAndThePayload) {
  std::string const text = "123456789";
  auto const frame = record_frame(std::as_bytes(std::span(text)));
  ASSERT_EQ(frame.size(), 8 + 4 + 9 + 4);
  EXPECT_EQ(Bytes(frame.begin(), frame.begin() + 8), bytes_of({9, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Bytes(frame.begin() + 8, frame.begin() + 12), bytes_of({0x37, 0xF9, 0x71, 0x39}));
  EXPECT_EQ(Bytes(frame.end() - 4, frame.end()), bytes_of({0xE5, 0xB0, 0x8A, 0xC7}));
}

TEST(TensorBoardWriter, WritesRecordsThatReadBack) {
  testing::TemporaryFolder const folder;
  TensorBoardWriter writer({.folder = folder.path(), .host = "node7"});
  writer.write(1, {{"loss", 2.0}});
  writer.write(2, {{"loss", 1.0}, {"lr", 0.1}});
  EXPECT_NE(writer.file().filename().string().find("tfevents"), std::string::npos);
  EXPECT_TRUE(writer.file().filename().string().ends_with(".node7"));
  auto const records = read_records(writer.file());
  ASSERT_EQ(records.size(), 3);
  EXPECT_EQ(event_step(records[0]), 0);
  EXPECT_EQ(event_step(records[1]), 1);
  EXPECT_EQ(event_step(records[2]), 2);
}

// TensorBoard joins all files of a folder: without the cut the curves would double back.
TEST(TensorBoardWriter, CutsStepsThatAreDoneAgain) {
  testing::TemporaryFolder const folder;
  TensorBoardWriter first({.folder = folder.path()});
  for (int step = 1; step <= 5; ++step) first.write(step, {{"loss", 1.0}});
  base::write_file_atomically(folder.path() / "log.jsonl", "not an event file\n");
  TensorBoardWriter second({.folder = folder.path(), .resumed_step = 3});
  second.write(4, {{"loss", 1.0}});
  EXPECT_NE(first.file(), second.file());
  EXPECT_EQ(read_records(first.file()).size(), 4);
  EXPECT_EQ(event_step(read_records(first.file()).back()), 3);
  EXPECT_EQ(read_records(second.file()).size(), 2);
  EXPECT_EQ(base::read_text_file(folder.path() / "log.jsonl"), "not an event file\n");
}

TEST(ReadRecords, StopAtADamagedOrTornRecord) {
  testing::TemporaryFolder const folder;
  TensorBoardWriter writer({.folder = folder.path()});
  for (int step = 1; step <= 3; ++step) writer.write(step, {{"loss", 1.0}});
  auto const bytes = base::read_file(writer.file());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    base::write_file_atomically(writer.file(), std::span(bytes).first(size));
    EXPECT_LT(read_records(writer.file()).size(), 4) << size;
  }
  auto damaged = bytes;
  damaged[damaged.size() - 6] ^= std::byte{1};
  base::write_file_atomically(writer.file(), damaged);
  EXPECT_EQ(read_records(writer.file()).size(), 3);
  EXPECT_EQ(event_step(bytes_of({0x10})), 0);
  EXPECT_EQ(
      event_step(bytes_of({0x2A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01})), 0);
}

}  // namespace
}  // namespace yolohpc::monitor
