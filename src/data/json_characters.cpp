#include "json_characters.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>

#include "yolohpc/base/error.hpp"

namespace yolohpc::data {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;
/// What has to be in sight of a character: the longest literal.
constexpr std::size_t sight_bytes = sizeof "-Infinity";
constexpr std::string_view null_text = "null";

}  // namespace

JsonCharacters::JsonCharacters(std::filesystem::path const& file)
    : file_(std::filesystem::is_directory(file) ? nullptr : std::fopen(file.c_str(), "rb")),
      path_(file),
      buffer_(block_bytes + sight_bytes) {
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, file_ != nullptr, "cannot open ", file.string(), ": ",
                   std::filesystem::is_directory(file) ? "it is a folder" : std::strerror(errno),
                   ". Give the file with the annotations.");
  place_ = end_ = buffer_.data();
  fill();
  look();
}

void JsonCharacters::fill() {
  auto const kept = static_cast<std::size_t>(end_ - place_);
  std::memmove(buffer_.data(), place_, kept);
  std::size_t const count = std::fread(buffer_.data() + kept, 1, block_bytes, file_.get());
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, std::ferror(file_.get()) == 0, "cannot read ",
                   path_.string(), ": ", std::strerror(errno), ".");
  place_ = buffer_.data();
  end_ = place_ + kept + count;
}

void JsonCharacters::look() {
  if (place_ == end_) return;
  char const letter = *place_;
  if (in_string_) {
    bool const closes = letter == '"' && !escaped_;
    escaped_ = letter == '\\' && !escaped_;
    in_string_ = !closes;
    return;
  }
  if (letter == '"') in_string_ = true;
  if (letter != 'N' && letter != 'I' && letter != '-') return;
  std::string_view const rest(place_, static_cast<std::size_t>(end_ - place_));
  for (std::string_view const literal : {"NaN", "Infinity", "-Infinity"}) {
    if (!rest.starts_with(literal)) continue;
    place_ += literal.size();
    replacement_ = null_text.data();
    removed_ += literal.size();
    added_ += null_text.size();
    return;
  }
}

void JsonCharacters::advance() {
  if (replacement_ != nullptr) {
    ++replacement_;
    if (replacement_ != null_text.data() + null_text.size()) return;
    replacement_ = nullptr;
  } else {
    ++place_;
  }
  if (static_cast<std::size_t>(end_ - place_) < sight_bytes) fill();
  look();
}

}  // namespace yolohpc::data
