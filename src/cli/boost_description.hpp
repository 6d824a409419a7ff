// The option table as Boost.ProgramOptions sees it.
#pragma once

#include <string>

#include <boost/program_options/options_description.hpp>

#include "yolohpc/cli/option_table.hpp"

namespace yolohpc::cli {

/// The options of one command, in groups, each with placeholder, default, help, unit and what is
/// allowed.
boost::program_options::options_description boost_description(Table const& table,
                                                              std::string const& command);

}  // namespace yolohpc::cli
