#include "yolohpc/checkpoint/store.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

#include "yolohpc/base/files.hpp"
#include "yolohpc/checkpoint/format.hpp"
#include "yolohpc/comm/communicator.hpp"

#include "folder.hpp"
#include "writer.hpp"

namespace yolohpc::checkpoint {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

/// What rank 0 found: the same on every rank after share().
struct Finding {
  base::ExitCode code = base::ExitCode::done;  ///< done: no error
  std::string text;  ///< of the error, else the path of the file; empty: none
  Bytes file;
};

void append(Bytes& to, std::string const& text) {
  auto const bytes = std::as_bytes(std::span(text));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// Runs `look` on rank 0. An error there becomes the same error on every rank, so that none waits
// for the others.
template <typename Look>
Finding decide_on_root(comm::Communicator& communicator, Look const& look) {
  Finding finding;
  Bytes message;
  if (communicator.is_root()) {
    try {
      finding = look();
    } catch (base::Error const& error) {
      finding = {error.code(), error.what(), {}};
    }
    message.push_back(static_cast<std::byte>(finding.code));
    append(message, finding.text);
  }
  communicator.broadcast_bytes(message, 0);
  finding.code = static_cast<base::ExitCode>(message.at(0));
  finding.text.assign(reinterpret_cast<char const*>(message.data()) + 1, message.size() - 1);
  if (finding.code != base::ExitCode::done) throw base::Error(finding.text, finding.code);
  return finding;
}

LoadedCheckpoint share(comm::Communicator& communicator, Finding finding) {
  communicator.broadcast_bytes(finding.file, 0);
  auto decoded = decode(finding.file, finding.text);
  return {finding.text, decoded.position, std::move(decoded.content)};
}

Finding read_verified(fs::path const& path) {
  Finding finding;
  finding.text = path.string();
  finding.file = base::read_file(path);
  decode(finding.file, finding.text);
  return finding;
}

Finding find_newest(fs::path const& folder, base::Log& log) {
  std::string problems;
  for (auto const& entry : list_checkpoints(folder)) {
    try {
      return read_verified(entry.path);
    } catch (base::Error const& error) {
      log.root(base::Level::warning, "CHECKPOINT DAMAGED: ", error.what(),
               " It is passed over; the run goes on from the one before, if there is one.");
      problems += std::string(problems.empty() ? "" : " ") + error.what();
    }
  }
  YOLOHPC_CHECK_AS(base::ExitCode::bad_data, problems.empty(), "no checkpoint in ", folder.string(),
                   " can be used: ", problems,
                   " Move them away to start afresh, or name another with --resume.");
  return {};
}

void make_folders(fs::path const& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  YOLOHPC_CHECK(!error && fs::is_directory(folder), "cannot make the folder ", folder.string(),
                ": ", error ? error.message() : "it is a file", ". Choose another --out.");
}

std::int64_t total_bytes(std::vector<FileEntry> const& files) {
  std::int64_t total = 0;
  for (auto const& file : files) {
    std::error_code error;
    auto const size_bytes = fs::file_size(file.path, error);
    if (!error) total += static_cast<std::int64_t>(size_bytes);
  }
  return total;
}

}  // namespace

CheckpointStore::CheckpointStore(StoreSettings settings, comm::Communicator& communicator,
                                 base::Log& log)
    : settings_(std::move(settings)), communicator_(communicator), log_(log) {
  YOLOHPC_CHECK_AS(base::ExitCode::usage, settings_.keep >= 1, "--keep is ", settings_.keep,
                   "; at least 1 checkpoint must stay.");
  decide_on_root(communicator_, [&] {
    make_folders(checkpoint_folder());
    remove_temporaries(checkpoint_folder());
    base::remove_stale_temporary(best_weights());
    base::remove_stale_temporary(last_weights());
    return Finding{};
  });
  if (communicator_.is_root()) writer_ = std::make_unique<Writer>(settings_.keep);
}

CheckpointStore::~CheckpointStore() {
  if (!writer_) return;
  writer_->wait_until_idle();
  for (auto const& outcome : writer_->take_outcomes()) {
    if (!outcome.error.empty()) log_.this_rank(base::Level::error, outcome.error);
  }
}

fs::path CheckpointStore::checkpoint_folder() const {
  return settings_.run_folder / "checkpoints";
}
fs::path CheckpointStore::best_weights() const {
  return settings_.run_folder / "best.safetensors";
}
fs::path CheckpointStore::last_weights() const {
  return settings_.run_folder / "last.safetensors";
}

void CheckpointStore::check_writable(std::int64_t size_bytes) {
  decide_on_root(communicator_, [&] {
    // `keep` newest, the best, and the one being written, less what is there already.
    auto const present_bytes = total_bytes(list_checkpoints(checkpoint_folder()));
    auto const all_bytes = (settings_.keep + 2) * size_bytes;
    auto const free_bytes = std::max(all_bytes - present_bytes, size_bytes);
    check_room(checkpoint_folder(), {free_bytes, size_bytes});
    return Finding{};
  });
}

std::optional<LoadedCheckpoint> CheckpointStore::load_newest() {
  auto finding =
      decide_on_root(communicator_, [&] { return find_newest(checkpoint_folder(), log_); });
  if (finding.text.empty()) return std::nullopt;
  return share(communicator_, std::move(finding));
}

LoadedCheckpoint CheckpointStore::load(fs::path const& path) {
  return share(communicator_, decide_on_root(communicator_, [&] { return read_verified(path); }));
}

void CheckpointStore::continue_from(std::optional<Position> from) {
  decide_on_root(communicator_, [&] {
    for (auto const& entry : list_checkpoints(checkpoint_folder())) {
      if (from && entry.step <= from->step) break;
      auto const aside = fs::path(entry.path.string() + ".set-aside");
      std::error_code error;
      fs::rename(entry.path, aside, error);
      YOLOHPC_CHECK(!error, "cannot rename ", entry.path.string(), " to ", aside.string(), ": ",
                    error.message(), ". Move it away: it lies ahead of where this run begins.");
      log_.root(base::Level::warning, entry.path.string(),
                " lies ahead of where this run begins; renamed to ", aside.filename().string(),
                ". Remove it when it is not needed.");
    }
    return Finding{};
  });
}

double CheckpointStore::save(base::Safetensors const& content, Position position, Quality quality) {
  if (!writer_) return 0;
  auto const path = checkpoint_folder() / file_name_of(position.step);
  return writer_->submit({path, content, position, quality});
}

double CheckpointStore::write_weights(fs::path const& path, base::Safetensors const& content) {
  if (!writer_) return 0;
  return writer_->submit({path, content, std::nullopt, Quality::ordinary});
}

std::vector<SaveOutcome> CheckpointStore::take_outcomes() {
  if (!writer_) return {};
  return writer_->take_outcomes();
}

std::vector<SaveOutcome> CheckpointStore::finish() {
  if (!writer_) return {};
  writer_->wait_until_idle();
  auto const failures = writer_->last_failures();
  YOLOHPC_CHECK(failures.empty(), "the last save did not reach the disk: ", failures);
  return writer_->take_outcomes();
}

}  // namespace yolohpc::checkpoint
