// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Status.h - Failure messages of the calling thread -----------------===//
//
// Every function of the runtime returns an hp_status; the words that go with a
// failure are kept per thread, as errno is, until the next failure.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_STATUS_H
#define HYPERPARALLEL_LIB_RUNTIME_STATUS_H

#include "lib/Runtime/hp_runtime.h"

#include <string>

namespace hyperparallel::runtime {

/// Keeps the message for hp_last_error() and returns `code`.
hp_status fail(hp_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// The same for a message that is already put together.
hp_status failWith(hp_status code, std::string message);

/// The calling thread's latest message.
const std::string &lastError();

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_STATUS_H
