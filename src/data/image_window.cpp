#include "yolohpc/data/image_window.hpp"

#include <algorithm>
#include <utility>

#include "yolohpc/base/error.hpp"
#include "yolohpc/data/resize.hpp"

namespace yolohpc::data {

void BadRecordList::add(BadRecord record) {
  std::lock_guard const lock(mutex_);
  if (known_.insert(record.sample).second) fresh_.push_back(std::move(record));
}

std::vector<BadRecord> BadRecordList::take() {
  std::lock_guard const lock(mutex_);
  return std::exchange(fresh_, {});
}

std::vector<std::uint8_t> PixelPool::take() {
  std::lock_guard const lock(mutex_);
  if (spare_.empty()) return {};
  auto pixels = std::move(spare_.back());
  spare_.pop_back();
  return pixels;
}

void PixelPool::give_back(std::vector<std::uint8_t> pixels) {
  std::lock_guard const lock(mutex_);
  spare_.push_back(std::move(pixels));
}

std::shared_ptr<LoadedPicture const> ImageWindow::get(std::uint32_t sample,
                                                      std::int64_t needed_until,
                                                      LoadScratch& scratch) {
  std::unique_lock lock(mutex_);
  auto const [place, is_new] = entries_.try_emplace(sample);
  if (is_new) place->second = std::make_shared<Entry>();
  // Held beside the table, which other threads may change while this one loads or waits.
  std::shared_ptr<Entry> const entry = place->second;
  entry->needed_until = is_new ? needed_until : std::max(entry->needed_until, needed_until);
  if (is_new) {
    lock.unlock();
    std::shared_ptr<LoadedPicture const> picture;
    std::exception_ptr fault;
    try {
      picture = load(sample, scratch);
    } catch (...) {
      fault = std::current_exception();
    }
    lock.lock();
    entry->picture = std::move(picture);
    entry->fault = fault;
    loaded_.notify_all();
  }
  loaded_.wait(lock, [&] { return !entry->is_pending(); });
  if (entry->fault) std::rethrow_exception(entry->fault);
  return entry->picture;
}

std::shared_ptr<LoadedPicture const> ImageWindow::load(std::uint32_t sample, LoadScratch& scratch) {
  auto const count = static_cast<std::uint64_t>(source_.size());
  // The memory of a picture returns to the pool when its last user is done with it.
  std::shared_ptr<LoadedPicture> const picture(new LoadedPicture,
                                               [pool = pool_](LoadedPicture* dead) {
                                                 std::unique_ptr<LoadedPicture> const owner(dead);
                                                 pool->give_back(std::move(owner->image.rgb));
                                               });
  picture->image.rgb = pool_->take();
  for (std::uint64_t step = 0; step < count; ++step) {
    auto const candidate = static_cast<std::uint32_t>((sample + step) % count);
    picture->replaced = step > 0;
    if (try_load(candidate, scratch, *picture)) return picture;
  }
  base::fail(base::ExitCode::bad_data, "none of the ", count,
             " pictures of the data set can be read (see the warnings above). Check it with "
             "`yolohpc-pack verify`.");
}

bool ImageWindow::try_load(std::uint32_t sample, LoadScratch& scratch, LoadedPicture& picture) {
  try {
    source_.load(sample, scratch);
  } catch (base::Error const& error) {
    if (settings_.on_bad_sample == OnBadSample::fail) throw;
    bad_records_.add({sample, source_.image_id(sample), error.what()});
    return false;
  }
  auto const view = view_of(scratch.picture);
  Size const loaded = loaded_size(view.size, settings_.image_size);
  resize_bilinear(view, loaded, picture.image);
  picture.sample = sample;
  picture.image_id = source_.image_id(sample);
  picture.boxes = source_.boxes(sample);
  // The gain of each axis is that of the rounded size. Source: spec/data.md section 2.
  auto const gain_x = static_cast<float>(loaded.width) / static_cast<float>(view.size.width);
  auto const gain_y = static_cast<float>(loaded.height) / static_cast<float>(view.size.height);
  for (auto& [box, label] : picture.boxes) {
    box = {box.x1 * gain_x, box.y1 * gain_y, box.x2 * gain_x, box.y2 * gain_y};
  }
  std::lock_guard const lock(mutex_);
  ++decoded_;
  return true;
}

void ImageWindow::forget_before(std::int64_t step) {
  // Destroyed after the lock is gone.
  std::vector<std::shared_ptr<Entry>> forgotten;
  std::lock_guard const lock(mutex_);
  for (auto place = entries_.begin(); place != entries_.end();) {
    bool const is_needed = place->second->is_pending() || place->second->needed_until >= step;
    if (!is_needed) forgotten.push_back(std::move(place->second));
    place = is_needed ? std::next(place) : entries_.erase(place);
  }
}

std::size_t ImageWindow::size() const {
  std::lock_guard const lock(mutex_);
  return entries_.size();
}

std::int64_t ImageWindow::decoded() const {
  std::lock_guard const lock(mutex_);
  return decoded_;
}

}  // namespace yolohpc::data
