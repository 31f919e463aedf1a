// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CUDA/CublasLt.h"

#include <dlfcn.h>

namespace hyperparallel::runtime::cuda {

hp_status CublasLt::load() {
  std::lock_guard<std::mutex> lock(mutex);
  if (loaded)
    return HP_OK;
  void *library = nullptr;
  for (const char *name :
       {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
    if (!library)
      library = openLibrary(path.c_str(), "HP_LIBCUBLASLT", name);
  if (!library)
    return fail(HP_NOT_FOUND,
                "matrix products on 'cuda' need libcublasLt.so.13 or .12 (%s); "
                "pip install nvidia-cublas, or name the library in "
                "HP_LIBCUBLASLT",
                dlerror());
#define HP_CUBLASLT_RESOLVE(NAME, MEMBER, PARAMETERS)                          \
  MEMBER = reinterpret_cast<int(*) PARAMETERS>(dlsym(library, #NAME));         \
  if (!MEMBER)                                                                 \
    return fail(HP_NOT_FOUND,                                                  \
                "libcublasLt has no " #NAME "; install version 12 or newer");
  HP_CUBLASLT_FUNCTIONS(HP_CUBLASLT_RESOLVE)
#undef HP_CUBLASLT_RESOLVE
  loaded = true;
  return HP_OK;
}

hp_status CublasLt::check(int result, const char *what) const {
  return result == 0 ? HP_OK
                     : fail(result == 3 ? HP_OUT_OF_MEMORY : HP_INTERNAL,
                            "%s: cuBLASLt error %d", what, result);
}

} // namespace hyperparallel::runtime::cuda
