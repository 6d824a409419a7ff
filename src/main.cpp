#include "yolohpc/cli/run.hpp"

int main(int argc, char** argv) {
  return yolohpc::cli::run(argc, argv);
}
