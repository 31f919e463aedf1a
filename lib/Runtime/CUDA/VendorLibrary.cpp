// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- VendorLibrary.cpp - Libraries that may be missing -----------------===//

#include "lib/Runtime/CUDA/Driver.h"

#include <cstdlib>
#include <dlfcn.h>

namespace hyperparallel::runtime::cuda {

void *openLibrary(const char *option, const char *variable, const char *name) {
  const char *given = option && *option ? option : std::getenv(variable);
  return dlopen(given && *given ? given : name, RTLD_NOW | RTLD_GLOBAL);
}

} // namespace hyperparallel::runtime::cuda
