#include "yolohpc/monitor/event_log.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

namespace yolohpc::monitor {
namespace {

using Json = nlohmann::ordered_json;

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json json_of(FieldValue const& field) {
  return std::visit(
      [](auto const& value) -> Json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, double>) {
          return finite_or_null(value);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          Json list = Json::array();
          for (double const element : value) list.push_back(finite_or_null(element));
          return list;
        } else {
          return value;
        }
      },
      field);
}

// A line that belongs to what the resumed run will do again, or that no complete write made.
bool is_kept(std::string_view line, std::int64_t resumed_step) {
  auto const json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  auto const step = json.find("step");
  return step != json.end() && step->is_number_integer() &&
         step->get<std::int64_t>() <= resumed_step;
}

std::string kept_lines(std::string const& text, std::int64_t resumed_step) {
  std::string kept;
  std::size_t begin = 0;
  // What follows the last line end is torn and falls out with it.
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    std::string_view const line(text.data() + begin, end - begin);
    if (is_kept(line, resumed_step)) kept.append(line).push_back('\n');
    begin = end + 1;
  }
  return kept;
}

std::string reason() {
  return std::strerror(errno);
}

}  // namespace

std::string event_line(std::string const& event, double time_s, int rank, Position position,
                       Fields const& fields) {
  Json json = {{"event", event},
               {"time", time_s},
               {"rank", rank},
               {"step", position.step},
               {"epoch", position.epoch}};
  for (auto const& [name, value] : fields) json[name] = json_of(value);
  // Texts may come from file names, which need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

EventLog::EventLog(Settings settings) : settings_(std::move(settings)) {
  if (settings_.rank != 0) return;
  auto const& file = settings_.file;
  if (settings_.resumed_step && std::filesystem::exists(file)) {
    base::write_file_atomically(file,
                                kept_lines(base::read_text_file(file), *settings_.resumed_step));
  }
  file_.reset(std::fopen(file.c_str(), settings_.resumed_step ? "ae" : "we"));
  YOLOHPC_CHECK(file_ != nullptr, "cannot open the event log ", file.string(), ": ", reason(),
                ". Check the run folder's permissions and free space.");
}

void EventLog::write(std::string const& event, Position position, Fields const& fields) {
  if (file_ == nullptr) return;
  auto const line =
      event_line(event, base::wall_clock_s(), settings_.rank, position, fields) + '\n';
  std::lock_guard const lock(mutex_);
  bool const is_written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                          std::fflush(file_.get()) == 0;
  if (!is_written && failure_.empty()) {
    failure_ = base::join("cannot write to ", settings_.file.string(), ": ", reason(),
                          ". Events are missing from it from step ", position.step, " on.");
  }
}

std::string EventLog::failure() const {
  std::lock_guard const lock(mutex_);
  return failure_;
}

}  // namespace yolohpc::monitor
