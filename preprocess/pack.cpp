// yolohpc-pack: labels and images to HDF5 shards, and the commands that look at packed splits.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "yolohpc/base/clock.hpp"
#include "yolohpc/base/error.hpp"
#include "yolohpc/base/log.hpp"
#include "yolohpc/cli/options.hpp"
#include "yolohpc/cli/session.hpp"
#include "yolohpc/cli/version.hpp"
#include "yolohpc/comm/communicator.hpp"
#include "yolohpc/comm/world.hpp"
#include "yolohpc/data/packer.hpp"
#include "yolohpc/data/shard_set.hpp"

#include "pack_options.hpp"

namespace yolohpc {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ExitCode;
using base::Level;
using cli::ParsedOptions;
using nlohmann::ordered_json;

constexpr double mebibyte = 1024.0 * 1024.0;
/// Faults printed; the report has all.
constexpr std::size_t shown_faults = 1000;

// ---- pack

/// Prints how far rank 0 is: a line that is rewritten on a terminal, a line now and then in a log
/// file.
class ProgressLine {
 public:
  void show(data::PackProgress const& progress) {
    bool const is_terminal = ::isatty(STDERR_FILENO) == 1;
    double const now_s = watch_.elapsed_s();
    bool const is_last = progress.done == progress.total;
    if (progress.total == 0 || (!is_terminal && now_s - shown_s_ < 10)) return;
    shown_s_ = now_s;
    double const done = static_cast<double>(progress.done);
    double const left_s =
        done > 0 ? progress.elapsed_s * (static_cast<double>(progress.total) - done) / done : 0;
    std::fprintf(stderr, "%s%s: %lld of %lld on rank 0, %.0f s, about %.0f s left%s",
                 is_terminal ? "\r\033[K" : "", progress.phase,
                 static_cast<long long>(progress.done), static_cast<long long>(progress.total),
                 progress.elapsed_s, left_s, is_terminal && !is_last ? "" : "\n");
    std::fflush(stderr);
  }

 private:
  base::Stopwatch watch_;
  double shown_s_ = 0;
};

std::string counts_text(std::map<std::string, std::int64_t> const& counts) {
  std::string text;
  for (auto const& [name, count] : counts) {
    text += base::join(text.empty() ? "" : ", ", name, " ", count);
  }
  return text.empty() ? "none" : text;
}

std::string fault_line(data::PackFault const& fault) {
  if (!fault.file.empty()) return base::join("  ", fault.file, ": ", fault.reason);
  return "  " + fault.reason;
}

void print_report(data::PackReport const& report, base::Log& log) {
  std::size_t const faults = report.skipped.size();
  Level const level = report.packed ? Level::warning : Level::error;
  if (faults > 0) {
    log.root(level, faults, faults == 1 ? " fault" : " faults",
             report.packed ? ", left out:" : ", nothing is packed:");
    for (std::size_t i = 0; i < std::min(faults, shown_faults); ++i) {
      log.root(level, fault_line(report.skipped[i]));
    }
    if (faults > shown_faults) {
      log.root(level, "  and ", faults - shown_faults, " more (--report FILE.json has all)");
    }
  }
  if (!report.packed) {
    log.root(level, "Mend them, or give --skip-bad to pack the rest.");
    return;
  }
  log.root(Level::info, "split ", report.split, ": ", report.images, " images, ", report.boxes,
           " boxes for training, ", report.crowd, " crowd regions, ", report.background,
           " images without a box");
  log.root(Level::info, report.shards, report.shards == 1 ? " shard, " : " shards, ",
           static_cast<double>(report.bytes) / mebibyte, " MiB, digest ", report.digest);
  log.root(Level::info, "conversions: ", counts_text(report.converted));
}

data::LabelSource read_labels(ParsedOptions const& options) {
  fs::path const images = options.get<std::string>("images");
  fs::path annotations = options.get<std::string>("annotations");
  bool const is_yolo = options.get<std::string>("labels") == "yolo";
  if (is_yolo && annotations.empty() && !images.empty()) annotations = images / "data.yaml";
  YOLOHPC_CHECK_AS(ExitCode::usage, !annotations.empty(), "--annotations is missing: give the ",
                   is_yolo ? "data.yaml" : "COCO instances JSON", ".");
  if (is_yolo)
    return data::read_yolo_folder(annotations, options.get<std::string>("split"), images);
  YOLOHPC_CHECK_AS(ExitCode::usage, !images.empty(),
                   "--images is missing: give the folder with the images.");
  YOLOHPC_CHECK_AS(ExitCode::bad_data, fs::is_directory(images), images.string(),
                   " is not a folder. Give the folder with the images.");
  return data::read_coco_json(annotations, images);
}

data::PackSettings settings_of(ParsedOptions const& options, int local_size) {
  data::PackSettings settings;
  settings.out = options.get<std::string>("out");
  settings.split = options.get<std::string>("split");
  settings.shard_bytes = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(options.get<double>("shard-mib") * mebibyte));
  settings.skip_bad = options.get<bool>("skip-bad");
  settings.overwrite = options.get<bool>("overwrite");
  settings.cache_bytes = static_cast<std::int64_t>(options.get<double>("cache-mib") * mebibyte);
  int const share = std::max(1, cli::usable_cores() / std::max(1, local_size));
  settings.threads = static_cast<int>(options.optional_integer("threads").value_or(share));
  return settings;
}

data::RankGroup group_of(comm::Communicator& communicator) {
  return {.rank = communicator.rank(),
          .size = communicator.size(),
          .all_gather = [&communicator](std::span<std::byte const> bytes) {
            return communicator.all_gather_bytes(bytes);
          }};
}

void write_reports(data::PackReport const& report, ParsedOptions const& options) {
  for (char const* name : {"report", "json"}) {
    auto const path = options.get<std::string>(name);
    if (!path.empty()) cli::write_json_result(path, data::to_json(report));
  }
}

/// The ranks of this job: MPI when a launcher started the program, a lone process otherwise, so
/// that packing on a login node needs no working MPI.
class Ranks {
 public:
  Ranks(int argc, char** argv, ParsedOptions const& options) {
    bool const is_lone = options.get<bool>("single-process") || !is_launched();
    if (is_lone) {
      communicator_ = comm::make_single_communicator();
      return;
    }
    double const timeout_s = options.get<double>("comm-timeout");
    comm::WorldSettings settings;
    settings.timeout_s = timeout_s;
    world_ = std::make_unique<comm::World>(argc, argv, settings);
    communicator_ = comm::make_mpi_communicator(*world_, {.timeout_s = timeout_s});
  }

  comm::Communicator& communicator() { return *communicator_; }
  int local_size() const { return world_ ? world_->local_size() : 1; }
  std::vector<std::string> warnings() const {
    return world_ ? world_->launch().warnings : std::vector<std::string>();
  }
  [[noreturn]] void abort(ExitCode code) const {
    if (world_) comm::World::abort(code);
    std::exit(static_cast<int>(code));
  }

 private:
  /// True when a variable of a process manager is set; World then finds out how many ranks there
  /// are.
  static bool is_launched() {
    constexpr std::string_view prefixes[] = {"OMPI_COMM_", "PMI_",   "PMIX_",          "SLURM_",
                                             "PALS_",      "FLUX_",  "JSM_",           "MV2_COMM_",
                                             "ALPS_",      "HYDRA_", "MPI_LOCALRANKID"};
    for (auto const& [name, value] : comm::launch_environment()) {
      for (std::string_view const prefix : prefixes) {
        if (name.starts_with(prefix)) return true;
      }
    }
    return false;
  }

  std::unique_ptr<comm::World> world_;
  std::unique_ptr<comm::Communicator> communicator_;
};

ExitCode pack_on(Ranks& ranks, base::Log& log, ParsedOptions const& options) {
  data::RankGroup const group = group_of(ranks.communicator());
  data::PackSettings settings = settings_of(options, ranks.local_size());
  ProgressLine line;
  if (group.rank == 0) {
    settings.on_progress = [&line](data::PackProgress const& progress) { line.show(progress); };
  }
  data::LabelSource const source = data::read_on_root(group, [&] { return read_labels(options); });
  data::PackReport const report = data::pack(source, data::file_reader(source), settings, group);
  print_report(report, log);
  if (group.rank == 0) write_reports(report, options);
  return report.packed ? ExitCode::done : ExitCode::bad_data;
}

ExitCode run_pack(int argc, char** argv, ParsedOptions const& options) {
  Ranks ranks(argc, argv, options);
  comm::Communicator& communicator = ranks.communicator();
  base::Log log({.rank = communicator.rank(), .host = communicator.host()});
  for (auto const& warning : options.warnings()) log.root(Level::warning, warning);
  for (auto const& warning : ranks.warnings()) log.root(Level::warning, warning);
  ExitCode code = ExitCode::failure;
  try {
    code = pack_on(ranks, log, options);
  } catch (Error const& error) {
    // A fault of one rank reaches all of them, so all come here; only communication breaks alone.
    if (error.code() == ExitCode::communication) {
      log.this_rank(Level::error, error.what());
      ranks.abort(error.code());
    }
    log.root(Level::error, error.what());
    code = error.code();
  } catch (std::exception const& error) {
    log.this_rank(Level::error, error.what());
    ranks.abort(ExitCode::failure);
  }
  // A launcher ends all ranks when the first leaves with a fault: let rank 0 finish its message.
  communicator.barrier();
  return code;
}

// ---- verify and ls

std::vector<std::string> splits_of(ParsedOptions const& options) {
  fs::path const folder = options.positionals().front();
  auto const wanted = options.get<std::string>("check-split");
  if (!wanted.empty()) return {wanted};
  auto const splits = data::packed_splits(folder);
  YOLOHPC_CHECK_AS(
      ExitCode::bad_data, !splits.empty(), folder.string(),
      " holds no complete packed split. Give the folder that yolohpc-pack wrote; if it "
      "was interrupted, pack again.");
  return splits;
}

ExitCode run_verify(ParsedOptions const& options, base::Log& log) {
  fs::path const folder = options.positionals().front();
  ordered_json result{{"splits", ordered_json::array()}, {"faults", ordered_json::array()}};
  for (std::string const& split : splits_of(options)) {
    auto const faults = data::verify_split(folder, split);
    for (std::string const& fault : faults) log.root(Level::error, split, ": ", fault);
    log.root(Level::info, split, ": ",
             faults.empty() ? "every checksum is right" : base::join(faults.size(), " faults"));
    result["splits"].push_back({{"split", split}, {"faults", faults.size()}});
    for (std::string const& fault : faults) result["faults"].push_back(fault);
  }
  if (auto const path = options.get<std::string>("json"); !path.empty()) {
    cli::write_json_result(path, result.dump(1));
  }
  return result["faults"].empty() ? ExitCode::done : ExitCode::bad_data;
}

ordered_json summary_of(data::ShardSet const& set) {
  std::vector<std::int64_t> boxes(set.categories().size(), 0);
  std::map<std::string, std::int64_t> formats;
  std::int64_t bytes = 0;
  std::int64_t annotations = 0;
  std::int64_t crowd = 0;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    data::Record const record = set.record(i);
    ++formats[data::name_of(record.format)];
    bytes += static_cast<std::int64_t>(record.size_bytes);
    for (auto const& box : set.training_boxes(i))
      ++boxes[static_cast<std::size_t>(box.class_index)];
    for (auto const& annotation : set.annotations(i)) {
      ++annotations;
      crowd += annotation.is_crowd ? 1 : 0;
    }
  }
  ordered_json result{{"split", set.split()},
                      {"images", set.size()},
                      {"annotations", annotations},
                      {"crowd", crowd},
                      {"boxes", 0},
                      {"shards", set.shard_count()},
                      {"bytes", bytes},
                      {"digest", set.digest()},
                      {"formats", formats}};
  std::int64_t total = 0;
  auto& categories = result["categories"] = ordered_json::array();
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    auto const& category = set.categories()[i];
    categories.push_back({{"id", category.id}, {"name", category.name}, {"boxes", boxes[i]}});
    total += boxes[i];
  }
  result["boxes"] = total;
  return result;
}

void print_summary(ordered_json const& summary, base::Log& log) {
  log.root(Level::info, "split ", summary["split"].get<std::string>(), ": ", summary["images"],
           " images, ", summary["boxes"], " boxes for training, ", summary["annotations"],
           " annotations (", summary["crowd"], " crowd), ", summary["shards"], " shards, ",
           summary["bytes"].get<double>() / mebibyte, " MiB");
  log.root(Level::info, "  digest ", summary["digest"].get<std::string>());
  for (auto const& [name, count] : summary["formats"].items()) {
    log.root(Level::info, "  ", name, ": ", count);
  }
  for (auto const& category : summary["categories"]) {
    log.root(Level::info, "  category ", category["id"], " ", category["name"].get<std::string>(),
             ": ", category["boxes"], " boxes");
  }
}

ExitCode run_ls(ParsedOptions const& options, base::Log& log) {
  ordered_json result = ordered_json::array();
  for (std::string const& split : splits_of(options)) {
    result.push_back(summary_of(data::ShardSet(options.positionals().front(), split)));
    print_summary(result.back(), log);
  }
  if (auto const path = options.get<std::string>("json"); !path.empty()) {
    cli::write_json_result(path, ordered_json{{"splits", result}}.dump(1));
  }
  return ExitCode::done;
}

// ---- main

/// Without a command the program packs.
cli::Invocation invocation_of(std::vector<std::string> const& words) {
  auto const& table = pack_table();
  bool const is_about_program =
      words.size() == 1 && (words.front() == "--help" || words.front() == "-h");
  bool const asks_version = std::find(words.begin(), words.end(), "--version") != words.end();
  bool const names_option = !words.empty() && words.front().starts_with("-");
  if (names_option && !is_about_program && !asks_version) {
    cli::Invocation invocation;
    invocation.command = "pack";
    invocation.arguments = words;
    return invocation;
  }
  return cli::read_invocation(table, words);
}

ExitCode run(int argc, char** argv) {
  auto const invocation = invocation_of(std::vector<std::string>(argv + 1, argv + argc));
  if (invocation.wants_version) {
    auto const record = cli::build_record();
    if (!invocation.json.empty()) {
      cli::write_json_result(invocation.json, cli::version_json(record));
    } else {
      std::printf("%s", cli::version_text(record).c_str());
    }
    return ExitCode::done;
  }
  if (invocation.wants_help && invocation.command.empty()) {
    std::printf("%s\n%s", cli::top_level_help(pack_table()).c_str(),
                cli::command_help(pack_table(), "pack").c_str());
    return ExitCode::done;
  }
  ParsedOptions const options = cli::parse(pack_table(), invocation.command, invocation.arguments,
                                           cli::process_environment());
  if (options.wants_help()) {
    std::printf("%s", cli::command_help(pack_table(), invocation.command).c_str());
    return ExitCode::done;
  }
  if (options.wants_version()) {
    std::printf("%s", cli::version_text(cli::build_record()).c_str());
    return ExitCode::done;
  }
  base::Log log;
  if (invocation.command == "verify") return run_verify(options, log);
  if (invocation.command == "ls") return run_ls(options, log);
  return run_pack(argc, argv, options);
}

/// One copy of a message is enough for what every rank finds before MPI starts.
bool is_root_by_environment() {
  for (char const* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (char const* value = std::getenv(name); value != nullptr) return std::atoi(value) == 0;
  }
  return true;
}

}  // namespace
}  // namespace yolohpc

int main(int argc, char** argv) {
  using yolohpc::base::ExitCode;
  try {
    return static_cast<int>(yolohpc::run(argc, argv));
  } catch (yolohpc::base::Error const& error) {
    if (yolohpc::is_root_by_environment()) std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (std::exception const& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(ExitCode::failure);
  }
}
