#include "jpeg_reader.hpp"

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>

// The message codes alone; the texts are in the library.
#include <jerror.h>

#include "exif.hpp"

namespace yolohpc::data {
namespace {

/// Scans of a progressive picture. Encoders write about ten; each scan costs a pass over all
/// blocks, so a small file that claims thousands would keep a core busy for minutes.
constexpr int max_scans = 500;

constexpr char exif_header[] = "Exif\0";  // with the final zero: six bytes

/// Warnings that say nothing about the pixels.
bool is_harmless(int code) {
  return code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM || code == JWRN_BOGUS_ICC;
}

bool is_unsupported(int code) {
  switch (code) {
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
      return true;
    default:
      return false;
  }
}

ImageFaultKind kind_of(int code) {
  if (code == JWRN_JPEG_EOF || code == JERR_INPUT_EOF || code == JERR_INPUT_EMPTY) {
    return ImageFaultKind::truncated;
  }
  return is_unsupported(code) ? ImageFaultKind::unsupported : ImageFaultKind::corrupt;
}

char const* words_of(ImageFaultKind kind) {
  switch (kind) {
    case ImageFaultKind::truncated:
      return "truncated: the JPEG ends before its picture does";
    case ImageFaultKind::unsupported:
      return "unsupported kind of JPEG";
    default:
      return "corrupt data in the JPEG";
  }
}

/// What libjpeg calls back into. It leaves by longjmp, so nothing here may own memory.
struct Callbacks {
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  int code = 0;
  bool too_many_scans = false;
  char text[JMSG_LENGTH_MAX] = {};
};

Callbacks& callbacks_of(j_common_ptr info) {
  return *static_cast<Callbacks*>(info->client_data);
}

[[noreturn]] void leave(j_common_ptr info) {
  Callbacks& callbacks = callbacks_of(info);
  callbacks.code = info->err->msg_code;
  info->err->format_message(info, callbacks.text);
  std::longjmp(callbacks.escape, 1);
}

void on_error(j_common_ptr info) {
  leave(info);
}

void on_message(j_common_ptr info, int level) {
  // Level -1 is a warning: the decoder goes on with made-up data. Such a picture is not packed.
  if (level < 0 && !is_harmless(info->err->msg_code)) leave(info);
}

void on_progress(j_common_ptr info) {
  auto const* picture = reinterpret_cast<j_decompress_ptr>(info);
  if (picture->input_scan_number <= max_scans) return;
  Callbacks& callbacks = callbacks_of(info);
  callbacks.too_many_scans = true;
  std::longjmp(callbacks.escape, 1);
}

void no_output(j_common_ptr) {}

int stored_orientation(jpeg_decompress_struct const& picture) {
  for (auto const* marker = picture.marker_list; marker != nullptr; marker = marker->next) {
    if (marker->marker != JPEG_APP0 + 1 || marker->data_length < sizeof exif_header) continue;
    if (std::memcmp(marker->data, exif_header, sizeof exif_header) != 0) continue;
    std::span const block(reinterpret_cast<std::byte const*>(marker->data), marker->data_length);
    return exif_orientation(block.subspan(sizeof exif_header));
  }
  return 1;
}

/// One row of C M Y K to R G B. Adobe's programs store the four inverted, and the marker says who
/// wrote it.
void cmyk_to_rgb(std::uint8_t const* cmyk, int width, bool inverted, std::uint8_t* rgb) {
  unsigned const flip = inverted ? 0u : 255u;
  for (int x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    unsigned const key = cmyk[3] ^ flip;
    for (int c = 0; c < 3; ++c) {
      rgb[c] = static_cast<std::uint8_t>(((cmyk[c] ^ flip) * key + 127) / 255);
    }
  }
}

}  // namespace

struct JpegReader::State {
  jpeg_decompress_struct picture{};
  Callbacks callbacks;
  std::vector<JSAMPROW> rows;
  std::vector<std::uint8_t> cmyk_row;

  bool read_header(std::span<std::byte const> bytes);
  bool decode_rows(std::span<std::byte const> bytes, std::span<std::uint8_t> rgb);
  void read_rows(std::span<std::uint8_t> rgb);
  void read_cmyk_rows(std::span<std::uint8_t> rgb);
  [[noreturn]] void throw_fault();
};

JpegReader::JpegReader() : state_(std::make_unique<State>()) {
  auto& picture = state_->picture;
  auto& callbacks = state_->callbacks;
  picture.err = jpeg_std_error(&callbacks.errors);
  callbacks.errors.error_exit = on_error;
  callbacks.errors.emit_message = on_message;
  callbacks.errors.output_message = no_output;
  picture.client_data = &callbacks;
  if (setjmp(callbacks.escape) != 0) state_->throw_fault();
  jpeg_create_decompress(&picture);
  callbacks.progress.progress_monitor = on_progress;
  picture.progress = &callbacks.progress;
  jpeg_save_markers(&picture, JPEG_APP0 + 1, 0xFFFF);
}

JpegReader::~JpegReader() {
  jpeg_destroy_decompress(&state_->picture);
}

void JpegReader::State::throw_fault() {
  jpeg_abort_decompress(&picture);
  if (std::exchange(callbacks.too_many_scans, false)) {
    throw ImageFault(ImageFaultKind::corrupt,
                     base::join("corrupt data in the JPEG: more than ", max_scans, " scans"));
  }
  ImageFaultKind const kind = kind_of(callbacks.code);
  throw ImageFault(kind, base::join(words_of(kind), " (libjpeg: ", callbacks.text, ")"));
}

// The two functions with setjmp own nothing, so that longjmp skips no destructor. False: a fault.
bool JpegReader::State::read_header(std::span<std::byte const> bytes) {
  if (setjmp(callbacks.escape) != 0) return false;
  jpeg_mem_src(&picture, reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size());
  jpeg_read_header(&picture, TRUE);
  return true;
}

void JpegReader::State::read_rows(std::span<std::uint8_t> rgb) {
  std::size_t const stride = std::size_t{picture.output_width} * 3;
  for (JDIMENSION y = 0; y < picture.output_height; ++y) rows[y] = rgb.data() + y * stride;
  while (picture.output_scanline < picture.output_height) {
    jpeg_read_scanlines(&picture, rows.data() + picture.output_scanline,
                        picture.output_height - picture.output_scanline);
  }
}

void JpegReader::State::read_cmyk_rows(std::span<std::uint8_t> rgb) {
  std::size_t const stride = std::size_t{picture.output_width} * 3;
  JSAMPROW row = cmyk_row.data();
  while (picture.output_scanline < picture.output_height) {
    std::uint8_t* const target = rgb.data() + picture.output_scanline * stride;
    jpeg_read_scanlines(&picture, &row, 1);
    cmyk_to_rgb(row, static_cast<int>(picture.output_width), picture.saw_Adobe_marker != FALSE,
                target);
  }
}

bool JpegReader::State::decode_rows(std::span<std::byte const> bytes, std::span<std::uint8_t> rgb) {
  if (!read_header(bytes)) return false;
  std::size_t const pixels = std::size_t{picture.image_width} * picture.image_height;
  bool const is_cmyk = picture.num_components == 4;
  if (rgb.size() != pixels * 3) {
    jpeg_abort_decompress(&picture);
    base::fail(base::ExitCode::failure, "memory of ", rgb.size(), " bytes for a picture of ",
               picture.image_width, " x ", picture.image_height, " pixels (needs ", pixels * 3,
               ")");
  }
  rows.resize(picture.image_height);
  cmyk_row.resize(is_cmyk ? std::size_t{picture.image_width} * 4 : 0);
  if (setjmp(callbacks.escape) != 0) return false;
  picture.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&picture);
  if (is_cmyk) {
    read_cmyk_rows(rgb);
  } else {
    read_rows(rgb);
  }
  // Reads on to the end marker: a file that lacks it is cut short.
  jpeg_finish_decompress(&picture);
  return true;
}

ImageInfo JpegReader::read_info(std::span<std::byte const> bytes) {
  if (!state_->read_header(bytes)) state_->throw_fault();
  auto const& picture = state_->picture;
  ImageInfo info;
  info.format = ImageFormat::jpeg;
  info.width_px = static_cast<int>(picture.image_width);
  info.height_px = static_cast<int>(picture.image_height);
  info.orientation = stored_orientation(picture);
  info.channels = picture.num_components;
  info.bits = picture.data_precision;
  jpeg_abort_decompress(&state_->picture);
  return info;
}

void JpegReader::decode(std::span<std::byte const> bytes, std::span<std::uint8_t> rgb) {
  if (!state_->decode_rows(bytes, rgb)) state_->throw_fault();
}

}  // namespace yolohpc::data
