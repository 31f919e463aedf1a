// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Fault.h - How hp-run ends when something is wrong -----------------===//
//
// hp-run is a tool with one thing to do: what is wrong with its input ends it,
// with one message that names the rank, and nonzero. Other ranks are told why.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_FAULT_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_FAULT_H

#include "lib/Runtime/hp_runtime.h"

#include <string>

namespace hyperparallel::launcher {

/// What to say first ("rank 2: "), and whom to tell; set when they are known.
void nameFaults(std::string prefix, hp_context *context);
/// What to tidy up before the process ends with a message; null: nothing.
void whenEnding(void (*action)());
/// Says the message on stderr, tells the other ranks, and ends the process.
[[noreturn]] void endWith(const std::string &message);
/// Ends with the runtime's message if the status is not HP_OK.
void require(hp_status status);

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_FAULT_H
