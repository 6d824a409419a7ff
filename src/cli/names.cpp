#include <algorithm>
#include <cctype>
#include <numeric>

#include "yolohpc/cli/options.hpp"

namespace yolohpc::cli {
namespace {

std::string normal_form(std::string_view word) {
  std::string result;
  for (char const letter : word) {
    if (letter == '_' || letter == '-') continue;
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return result;
}

// Changed, added, left out or swapped letters. Source: Damerau, CACM 7 (1964), restricted form.
std::size_t edit_distance(std::string const& a, std::string const& b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      bool const is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

// A word that begins like the other is near although much is missing: batch-size is meant as batch.
double distance(std::string const& word, std::string const& candidate) {
  constexpr double cost_behind_prefix = 0.25;
  constexpr std::size_t shortest_prefix = 3;
  auto const common = std::mismatch(word.begin(), word.end(), candidate.begin(), candidate.end());
  auto const length = static_cast<std::size_t>(common.first - word.begin());
  auto const edits = static_cast<double>(edit_distance(word, candidate));
  bool const is_prefix = length == std::min(word.size(), candidate.size());
  if (!is_prefix || length < shortest_prefix) return edits;
  return 1 + cost_behind_prefix * (edits - 1);
}

}  // namespace

std::string nearest(std::string_view word, std::vector<std::string> const& candidates) {
  auto const wanted = normal_form(word);
  std::string best;
  double best_distance = 0;
  for (auto const& candidate : candidates) {
    double const d = distance(wanted, normal_form(candidate));
    if (best.empty() || d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace yolohpc::cli
