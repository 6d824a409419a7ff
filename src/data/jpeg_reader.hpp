// JpegReader: libjpeg-turbo with errors as ImageFault and warnings taken seriously.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "yolohpc/data/image.hpp"

namespace yolohpc::data {

/// One decompressor that is reused from picture to picture.
class JpegReader {
 public:
  JpegReader();
  JpegReader(JpegReader const&) = delete;
  JpegReader& operator=(JpegReader const&) = delete;
  ~JpegReader();

  /// \throws ImageFault
  ImageInfo read_info(std::span<std::byte const> bytes);
  /// \param rgb  height * width * 3 bytes as the header says; \throws ImageFault
  void decode(std::span<std::byte const> bytes, std::span<std::uint8_t> rgb);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yolohpc::data
