// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Reduce.h - Element-wise reduction of several buffers --------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_REDUCE_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_REDUCE_H

#include "lib/Runtime/ElementTypes.h"

namespace hyperparallel::runtime {

/// dst[i] = op over s of sources[s][i], folded in the order of s. dst may be
/// one of the sources. Requires canReduce.
void reduceBuffers(int64_t dtype, int64_t op, const char *const *sources,
                   int64_t numSources, char *dst, int64_t count);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_REDUCE_H
