// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CUDA/Driver.h"

#include <dlfcn.h>

namespace hyperparallel::runtime::cuda {

hp_status Driver::load(const char *path) {
  if (loaded)
    return HP_OK;
  void *library = openLibrary(path, "HP_LIBCUDA", "libcuda.so.1");
  if (!library)
    return fail(HP_NOT_FOUND,
                "back end 'cuda' needs the NVIDIA driver's libcuda.so.1 (%s); "
                "install the driver, or name the library in HP_LIBCUDA",
                dlerror());
#define HP_CUDA_RESOLVE(NAME, MEMBER, PARAMETERS)                              \
  MEMBER = reinterpret_cast<Result(*) PARAMETERS>(dlsym(library, #NAME));      \
  if (!MEMBER)                                                                 \
    return fail(HP_NOT_FOUND,                                                  \
                "back end 'cuda' needs a driver of CUDA 12.0 or newer: "       \
                "libcuda.so.1 has no " #NAME);
  HP_CUDA_DRIVER_FUNCTIONS(HP_CUDA_RESOLVE)
  HP_CUDA_GRAPH_FUNCTIONS(HP_CUDA_RESOLVE)
#undef HP_CUDA_RESOLVE
  hp_status status = check(init(0), "starting the driver");
  loaded = status == HP_OK;
  return status;
}

hp_status Driver::check(Result result, const char *what) const {
  if (result == Success)
    return HP_OK;
  const char *words = nullptr;
  errorString(result, &words);
  return fail(result == OutOfMemory ? HP_OUT_OF_MEMORY : HP_INTERNAL,
              "%s: %s (CUDA error %d)", what, words ? words : "unknown error",
              result);
}

} // namespace hyperparallel::runtime::cuda
