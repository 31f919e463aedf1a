// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- GeneratedCode.h - How calls of compiled programs begin and end ----===//
//
// Each hp_rt_* function checks whether the run is being stopped, does its work
// in functions that return a status, and leaves the program by longjmp if that
// is not HP_OK. At that point no object with a destructor is alive in the
// frames that are skipped: they are compiled code and the hp_rt_* functions.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_GENERATEDCODE_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_GENERATEDCODE_H

#include "lib/Runtime/CPU/Device.h"

namespace hyperparallel::runtime {

/// The device that runs the calling thread's program. Compiled code that is
/// called from elsewhere has no executor to report to: the process ends.
Device &currentDevice(const char *function);

/// Records the failure and returns to the executor, or, inside a parallel
/// body, to the loop.
HP_NORETURN void leaveProgram(Device &device, hp_status status);

/// Refuses what parallel bodies must not do.
hp_status refuseInBody(const char *what);

/// The same, and HP_CANCELLED if the run is being stopped.
hp_status mayCall(Device &device, const char *what);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_GENERATEDCODE_H
