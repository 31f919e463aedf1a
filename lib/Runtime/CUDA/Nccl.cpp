// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CUDA/Nccl.h"
#include "lib/Runtime/ElementTypes.h"

#include <dlfcn.h>

namespace hyperparallel::runtime::cuda {

hp_status Nccl::load() {
  std::lock_guard<std::mutex> lock(mutex);
  if (loaded)
    return HP_OK;
  void *library = openLibrary(path.c_str(), "HP_LIBNCCL", "libnccl.so.2");
  if (!library)
    return fail(HP_NOT_FOUND,
                "collectives on 'cuda' need libnccl.so.2 (%s); pip install "
                "nvidia-nccl-cu13, or name the library in HP_LIBNCCL",
                dlerror());
#define HP_NCCL_RESOLVE(NAME, MEMBER, PARAMETERS)                              \
  MEMBER = reinterpret_cast<int(*) PARAMETERS>(dlsym(library, #NAME));         \
  if (!MEMBER)                                                                 \
    return fail(HP_NOT_FOUND,                                                  \
                "libnccl has no " #NAME "; install version 2.10 or newer");
  HP_NCCL_FUNCTIONS(HP_NCCL_RESOLVE)
#undef HP_NCCL_RESOLVE
  lastError = reinterpret_cast<const char *(*)(nccl::Comm)>(
      dlsym(library, "ncclGetLastError"));
  loaded = true;
  return HP_OK;
}

hp_status Nccl::check(int result, const char *what) const {
  if (result == 0)
    return HP_OK;
  const char *words = lastError ? lastError(nullptr) : nullptr;
  return words && *words
             ? fail(HP_INTERNAL, "%s: NCCL error %d: %s", what, result, words)
             : fail(HP_INTERNAL, "%s: NCCL error %d", what, result);
}

} // namespace hyperparallel::runtime::cuda
