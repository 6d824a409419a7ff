#include "support/golden.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "yolohpc/base/error.hpp"

namespace yolohpc::testing {
namespace {

namespace fs = std::filesystem;

std::string environment(char const* name, char const* otherwise) {
  char const* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

double formula_value(std::string const& name, std::uint32_t seed, std::uint64_t index) {
  constexpr double half = 8388608.0;  // 2^23
  return (static_cast<double>(formula_bits(name, seed, index) >> 8) - half) / half;
}

bool ends_with(std::string const& text, std::string const& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

fs::path golden_dir() {
  return environment("YOLOHPC_GOLDEN_DIR",
                     environment("YOLOHPC_GOLDEN_DIR_DEFAULT", "tests/golden").c_str());
}

fs::path shared_dir() {
  fs::path const path = environment("YOLOHPC_SHARED_DIR", "../shared");
  return fs::exists(path) ? path : fs::path();
}

fs::path bin_dir() {
  return environment("YOLOHPC_BIN_DIR", "build/bin");
}
fs::path source_dir() {
  return environment("YOLOHPC_SOURCE_DIR", ".");
}

nlohmann::json golden_json(std::string const& name) {
  std::ifstream file(golden_dir() / name);
  YOLOHPC_CHECK(file.good(), "fixture ", (golden_dir() / name).string(), " is missing.");
  return nlohmann::json::parse(file);
}

base::Safetensors golden_tensors(std::string const& name) {
  return base::read_safetensors((golden_dir() / name).string());
}

std::uint32_t formula_bits(std::string const& name, std::uint32_t seed, std::uint64_t index) {
  std::uint32_t hash = 0x811C9DC5;
  for (unsigned char const byte : name) hash = (hash ^ byte) * 0x01000193;
  std::uint32_t x = (hash ^ (seed * 0x9E3779B9u)) + static_cast<std::uint32_t>(index) * 0x9E3779B1u;
  x ^= x >> 16;
  x *= 0x85EBCA6B;
  x ^= x >> 13;
  x *= 0xC2B2AE35;
  x ^= x >> 16;
  return x;
}

at::Tensor formula_state(std::string const& name, at::IntArrayRef shape, std::uint32_t seed) {
  if (ends_with(name, "num_batches_tracked")) {
    auto counter = at::empty(shape, at::TensorOptions().dtype(at::kLong));
    return counter.zero_();
  }
  auto tensor = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  double offset = 0;
  double scale = 0.5;
  if (ends_with(name, "dfl.conv.weight")) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      tensor.data_ptr<float>()[i] = static_cast<float>(i);
    }
    return tensor;
  }
  if (shape.size() == 4) {
    scale = std::sqrt(4.5 / static_cast<double>(shape[1] * shape[2] * shape[3]));
  } else if (ends_with(name, ".bn.weight")) {
    offset = 1;
    scale = 0.25;
  } else if (ends_with(name, "running_mean")) {
    scale = 0.1;
  } else if (ends_with(name, "running_var")) {
    offset = 1;
  }
  auto* values = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<float>(offset + formula_value(name, seed, i) * scale);
  }
  return tensor;
}

at::Tensor formula_image(std::string const& name, at::IntArrayRef shape, std::uint32_t seed) {
  auto tensor = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  auto* values = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<float>(formula_bits(name, seed, i) >> 24) / 255.0f;
  }
  return tensor;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "yolohpc-test-XXXXXX").string();
  YOLOHPC_CHECK(mkdtemp(pattern.data()) != nullptr, "no temporary folder like ", pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

CommandResult run_command(std::string const& command) {
  CommandResult result;
  std::FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  YOLOHPC_CHECK(pipe != nullptr, "cannot start: ", command);
  char buffer[4096];
  for (std::size_t count; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    result.output.append(buffer, count);
  }
  int const status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

void expect_close(at::Tensor const& got, at::Tensor const& expected, double rtol, double atol,
                  std::string const& what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  auto const a = got.detach().to(at::kCPU, at::kDouble).contiguous();
  auto const b = expected.detach().to(at::kCPU, at::kDouble).contiguous();
  double worst = 0;
  std::int64_t worst_at = -1;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    double const x = a.data_ptr<double>()[i];
    double const y = b.data_ptr<double>()[i];
    double const share = std::abs(x - y) / (atol + rtol * std::abs(y) + 1e-300);
    if (!(share <= worst) && x != y) {
      worst = share;
      worst_at = i;
      if (std::isnan(share)) break;
    }
  }
  if (worst_at < 0 || worst <= 1) return;
  double const x = a.data_ptr<double>()[worst_at];
  double const y = b.data_ptr<double>()[worst_at];
  ADD_FAILURE() << what << ": element " << worst_at << " is " << x << ", expected " << y
                << ", difference " << std::abs(x - y) << ", bound " << atol + rtol * std::abs(y);
}

}  // namespace yolohpc::testing
