// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- RandomTensors.h - Values where a program is only timed ------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_RANDOMTENSORS_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_RANDOMTENSORS_H

#include "lib/Runtime/Launcher/Manifest.h"

namespace hyperparallel::launcher {

/// Fills a device's block of a tensor with numbers that depend on the seed, the
/// tensor's name and the place in the whole tensor, so that every layout gets
/// the same ones. Matrices are within 1 / sqrt(last dimension) of 0, vectors
/// within 1 / 2 of 1; integers are 0 to 31, states and caches are zero.
void drawBlock(const Tensor &tensor, const Block &block, int64_t seed,
               char *out);

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_RANDOMTENSORS_H
