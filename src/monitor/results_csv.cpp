#include "yolohpc/monitor/results_csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <sstream>
#include <string_view>

#include <unistd.h>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

namespace yolohpc::monitor {
namespace {

enum class Format { count, seconds, number };

struct Column {
  std::string_view name;
  Format format;
  double EpochRow::*real = nullptr;
  std::int64_t EpochRow::*whole = nullptr;
};

constexpr Column real(std::string_view name, double EpochRow::*member,
                      Format format = Format::number) {
  return {name, format, member, nullptr};
}
constexpr Column whole(std::string_view name, std::int64_t EpochRow::*member) {
  return {name, Format::count, nullptr, member};
}

// The first fifteen are those of other trainers' files, so that their plot scripts work.
constexpr Column columns[] = {
    whole("epoch", &EpochRow::epoch),
    real("time", &EpochRow::time_s, Format::seconds),
    real("train/box_loss", &EpochRow::train_box_loss),
    real("train/cls_loss", &EpochRow::train_cls_loss),
    real("train/dfl_loss", &EpochRow::train_dfl_loss),
    real("metrics/precision(B)", &EpochRow::precision),
    real("metrics/recall(B)", &EpochRow::recall),
    real("metrics/mAP50(B)", &EpochRow::map50),
    real("metrics/mAP50-95(B)", &EpochRow::map50_95),
    real("val/box_loss", &EpochRow::val_box_loss),
    real("val/cls_loss", &EpochRow::val_cls_loss),
    real("val/dfl_loss", &EpochRow::val_dfl_loss),
    real("lr/pg0", &EpochRow::lr_pg0),
    real("lr/pg1", &EpochRow::lr_pg1),
    real("lr/pg2", &EpochRow::lr_pg2),
    real("coco/AP", &EpochRow::coco_ap),
    real("coco/AP50", &EpochRow::coco_ap50),
    real("coco/AP75", &EpochRow::coco_ap75),
    real("images_per_s", &EpochRow::images_per_s),
    real("data_wait", &EpochRow::data_wait),
    real("comm_wait", &EpochRow::comm_wait),
    real("validation_s", &EpochRow::validation_s, Format::seconds),
    whole("steps", &EpochRow::steps),
    whole("skipped_steps", &EpochRow::skipped_steps),
    whole("bad_samples", &EpochRow::bad_samples),
    real("peak_memory_mib", &EpochRow::peak_memory_mib),
};

std::string field_text(EpochRow const& row, Column const& column) {
  if (column.format == Format::count) return std::to_string(row.*column.whole);
  double const value = row.*column.real;
  if (!std::isfinite(value)) return {};
  char text[32];
  std::snprintf(text, sizeof text, column.format == Format::seconds ? "%.3f" : "%.6g", value);
  return text;
}

template <typename T>
bool read_field(std::string_view text, T& value) {
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_column(std::string_view text, Column const& column, EpochRow& row) {
  if (column.format == Format::count) return read_field(text, row.*column.whole);
  if (text.empty()) {
    row.*column.real = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  return read_field(text, row.*column.real);
}

// The rows up to `last_epoch`, ending before the first that is damaged or out of order.
std::vector<EpochRow> kept_rows(std::string const& text, std::int64_t last_epoch,
                                std::filesystem::path const& file) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, line == results_header(), file.string(),
                   " begins with '", line.substr(0, 60),
                   "...', which is not the header of this version of yolohpc. Move the file away.");
  std::vector<EpochRow> rows;
  while (std::getline(lines, line)) {
    auto const row = parse_results_row(line);
    bool const follows = row && (rows.empty() || row->epoch > rows.back().epoch);
    // Without its line end the last number may be cut short and look whole.
    if (!follows || lines.eof() || row->epoch > last_epoch) break;
    rows.push_back(*row);
  }
  return rows;
}

std::string whole_file(std::vector<EpochRow> const& rows) {
  std::string text = results_header() + '\n';
  for (auto const& row : rows) text += results_row(row) + '\n';
  return text;
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::string results_header() {
  std::string text;
  for (auto const& column : columns) {
    if (!text.empty()) text += ',';
    text += column.name;
  }
  return text;
}

std::string results_row(EpochRow const& row) {
  std::string text;
  for (auto const& column : columns) {
    if (&column != columns) text += ',';
    text += field_text(row, column);
  }
  return text;
}

std::optional<EpochRow> parse_results_row(std::string const& line) {
  EpochRow row;
  std::size_t begin = 0;
  for (auto const& column : columns) {
    if (begin > line.size()) return std::nullopt;
    auto const end = std::min(line.find(',', begin), line.size());
    if (!read_column(std::string_view(line).substr(begin, end - begin), column, row)) {
      return std::nullopt;
    }
    begin = end + 1;
  }
  // One past the line's end: nothing is left over.
  return begin == line.size() + 1 ? std::optional(row) : std::nullopt;
}

ResultsCsv::ResultsCsv(Settings settings) : settings_(std::move(settings)) {
  auto const& file = settings_.file;
  if (settings_.resumed_epoch && std::filesystem::exists(file)) {
    rows_ = kept_rows(base::read_text_file(file), *settings_.resumed_epoch, file);
  }
  base::write_file_atomically(file, whole_file(rows_));
}

void ResultsCsv::append(EpochRow const& row) {
  YOLOHPC_CHECK(rows_.empty() || row.epoch > rows_.back().epoch, settings_.file.string(),
                ": the row of epoch ", row.epoch, " cannot follow that of epoch ",
                rows_.empty() ? 0 : rows_.back().epoch, ". This is a bug; please report it.");
  std::unique_ptr<std::FILE, Close> const file(std::fopen(settings_.file.c_str(), "ae"));
  auto const line = results_row(row) + '\n';
  bool const is_written = file != nullptr &&
                          std::fwrite(line.data(), 1, line.size(), file.get()) == line.size() &&
                          std::fflush(file.get()) == 0 && ::fsync(::fileno(file.get())) == 0;
  YOLOHPC_CHECK(is_written, "cannot append epoch ", row.epoch, " to ", settings_.file.string(),
                ". Check free space and quota of that file system.");
  rows_.push_back(row);
}

}  // namespace yolohpc::monitor
