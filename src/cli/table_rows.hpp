// The rows of yolohpc's option table, by the commands they were made for.
#pragma once

#include <string_view>
#include <vector>

#include "yolohpc/cli/option_table.hpp"

namespace yolohpc::cli {

/// \name Headings of the help text, in the order in which they appear
inline constexpr std::string_view data_group = "Data";
inline constexpr std::string_view model_group = "Model";
inline constexpr std::string_view schedule_group = "Schedule and optimizer";
inline constexpr std::string_view loss_group = "Loss gains";
inline constexpr std::string_view augment_group = "Augmentation (training)";
inline constexpr std::string_view detect_group = "Detection";
inline constexpr std::string_view measure_group = "Measurement";
inline constexpr std::string_view engine_group = "Engine";
inline constexpr std::string_view machine_group = "Ranks and devices";
inline constexpr std::string_view run_group = "Run folder, checkpoints, stopping";
inline constexpr std::string_view output_group = "Output";
inline constexpr std::string_view general_group = "General";

/// Data, model, schedule, loss gains.
std::vector<Option> recipe_options();
/// Augmentation.
std::vector<Option> augmentation_options();
/// Engine, ranks and devices, run folder.
std::vector<Option> machine_options();
/// Options of val, eval, predict, export, bench.
std::vector<Option> inference_options();

}  // namespace yolohpc::cli
