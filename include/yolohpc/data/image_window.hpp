// ImageWindow: the pictures that were decoded lately and will be needed again, shared by all
// workers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "yolohpc/data/sample_source.hpp"

namespace yolohpc::data {

/// What becomes of a record that cannot be read.
enum class OnBadSample {
  replace,  ///< another picture stands in for it
  fail,     ///< the error reaches the caller
};

/// A record that could not be read.
struct BadRecord {
  std::uint32_t sample = 0;
  std::int64_t image_id = 0;
  std::string reason;
};

/// Collects bad records, each once. Thread-safe.
class BadRecordList {
 public:
  void add(BadRecord record);
  /// Those added since the last call.
  std::vector<BadRecord> take();

 private:
  std::mutex mutex_;
  std::unordered_set<std::uint32_t> known_;
  std::vector<BadRecord> fresh_;
};

/// Pixel memory that is used again: the first touch of a fresh megabyte costs more than decoding
/// into it saves. Thread-safe.
class PixelPool {
 public:
  /// Memory of any size and content.
  std::vector<std::uint8_t> take();
  void give_back(std::vector<std::uint8_t> pixels);

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::uint8_t>> spare_;
};

/// Loads, resizes and keeps pictures. Thread-safe; no lock is held while a picture is read, decoded
/// or resized. A picture that two threads want at once is decoded by the first; the other waits.
class ImageWindow {
 public:
  struct Settings {
    int image_size = 640;  ///< pixels of the long side after loading
    OnBadSample on_bad_sample = OnBadSample::replace;
  };

  /// \param source  must outlive the window
  ImageWindow(SampleSource const& source, Settings const& settings)
      : source_(source), settings_(settings) {}
  ImageWindow(ImageWindow const&) = delete;
  ImageWindow& operator=(ImageWindow const&) = delete;

  /// The picture of `sample`, or of the one that replaces it: sample + 1, sample + 2, ... (modulo
  /// N), the first that can be read. That depends on the data set alone, so every rank count sees
  /// the same.
  ///
  /// \param needed_until  last step at which the caller's plan may ask for this picture
  /// \param scratch       of the calling thread
  /// \throws Error (bad data)  with OnBadSample::fail the record's fault; else only if no picture
  /// of the
  ///                           data set can be read
  std::shared_ptr<LoadedPicture const> get(std::uint32_t sample, std::int64_t needed_until,
                                           LoadScratch& scratch);

  /// Forgets pictures that no step from `step` on needs.
  void forget_before(std::int64_t step);

  /// Bad records met since the last call, each reported once.
  std::vector<BadRecord> take_bad_records() { return bad_records_.take(); }

  /// Pictures kept.
  std::size_t size() const;
  /// Pictures read and decoded so far.
  std::int64_t decoded() const;

 private:
  struct Entry {
    std::shared_ptr<LoadedPicture const> picture;  ///< null while it is being loaded
    std::exception_ptr fault;
    std::int64_t needed_until = 0;
    bool is_pending() const { return !picture && !fault; }
  };

  std::shared_ptr<LoadedPicture const> load(std::uint32_t sample, LoadScratch& scratch);
  bool try_load(std::uint32_t sample, LoadScratch& scratch, LoadedPicture& picture);

  SampleSource const& source_;
  Settings settings_;
  std::shared_ptr<PixelPool> pool_ = std::make_shared<PixelPool>();
  BadRecordList bad_records_;
  mutable std::mutex mutex_;
  std::condition_variable loaded_;
  std::unordered_map<std::uint32_t, std::shared_ptr<Entry>> entries_;
  std::int64_t decoded_ = 0;
};

}  // namespace yolohpc::data
