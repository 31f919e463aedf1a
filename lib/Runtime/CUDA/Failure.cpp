// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Failure.cpp - Failures, and libraries that may be missing ---------===//

#include "lib/Runtime/CUDA/Driver.h"
#include "lib/Runtime/hp_backend.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace hyperparallel::runtime::cuda {

hp_status fail(hp_status code, const char *format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  return hp_backend_error(code, message);
}

void *openLibrary(const char *option, const char *variable, const char *name) {
  const char *given = option && *option ? option : std::getenv(variable);
  return dlopen(given && *given ? given : name, RTLD_NOW | RTLD_GLOBAL);
}

} // namespace hyperparallel::runtime::cuda
