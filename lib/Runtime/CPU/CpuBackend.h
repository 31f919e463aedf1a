// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_CPUBACKEND_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_CPUBACKEND_H

#include "lib/Runtime/hp_backend.h"

namespace hyperparallel::runtime {

/// The table of the built-in back end.
const hp_backend_v1 *cpuBackend();

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_CPUBACKEND_H
