// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Options.h - The command line of hp-run ----------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_OPTIONS_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_OPTIONS_H

#include <cstdint>
#include <string>

namespace hyperparallel::launcher {

struct Options {
  std::string directory;
  int64_t steps = 1, saveEvery = 0, lostMs = 4000, stuckMs = 6000;
  int64_t random = 0; ///< a seed for what has no value; 0 to ask for one
  std::string inputs, data, weights, results, save, resume, statistics;
  bool givesInputs = false, givesData = false; ///< or what lies beside
  std::string threads, openblas, mpi;

  /// Ends the process with usage or a message where the line makes no sense.
  static Options read(int argc, char **argv);
};

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_OPTIONS_H
