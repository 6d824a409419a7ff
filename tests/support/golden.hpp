// Fixtures: where they are, how they are read, and the portable formula that fills tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "yolohpc/base/safetensors.hpp"

namespace yolohpc::testing {

/// $YOLOHPC_GOLDEN_DIR, by default tests/golden.
std::filesystem::path golden_dir();
/// Data that is used in place: the folder `shared` beside the checkout. Empty path when it is not
/// there.
std::filesystem::path shared_dir();
/// Where the built programs are.
std::filesystem::path bin_dir();
std::filesystem::path source_dir();

nlohmann::json golden_json(std::string const& name);
base::Safetensors golden_tensors(std::string const& name);

/// The formula fill of the fixtures: FNV-1a of the name, then an integer hash of the flat index.
std::uint32_t formula_bits(std::string const& name, std::uint32_t seed, std::uint64_t index);
/// The value a fixture gives to the state-dict entry `name` with `shape`; int64 for counters, else
/// float32.
at::Tensor formula_state(std::string const& name, at::IntArrayRef shape, std::uint32_t seed);
/// bits >> 24, divided by 255: (B, 3, H, W) float32.
at::Tensor formula_image(std::string const& name, at::IntArrayRef shape, std::uint32_t seed);

/// A fresh folder that is removed when the object dies.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;
  ~TemporaryFolder();
  std::filesystem::path const& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Exit status and output (stdout and stderr together) of a shell command.
struct CommandResult {
  int status = -1;
  std::string output;
};
CommandResult run_command(std::string const& command);

/// Fails the running test unless every element of `got` is within atol + rtol * |expected|; prints
/// the worst element, both values and the bound. NaN never passes.
void expect_close(at::Tensor const& got, at::Tensor const& expected, double rtol, double atol,
                  std::string const& what);

}  // namespace yolohpc::testing
