// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Blas.cpp - Loads OpenBLAS -----------------------------------------===//

#include "lib/Runtime/CPU/Matmul.h"
#include "lib/Runtime/Status.h"

#include <cstdlib>
#include <dlfcn.h>

namespace hyperparallel::runtime {

static const char Hint[] =
    "install it with 'pip install scipy-openblas32', or name "
    "libscipy_openblas.so in the context option 'openblas' or in "
    "HP_OPENBLAS_LIBRARY";

template <typename Fn>
static hp_status find(void *library, const char *name, Fn &out) {
  out = reinterpret_cast<Fn>(dlsym(library, name));
  if (out)
    return HP_OK;
  return fail(HP_NOT_FOUND, "matmul: OpenBLAS does not export %s; %s", name,
              Hint);
}

hp_status Blas::loadLocked() {
  if (path.empty())
    if (const char *fromEnvironment = std::getenv("HP_OPENBLAS_LIBRARY"))
      path = fromEnvironment;
  std::string file = path.empty() ? "libscipy_openblas.so" : path;
  // OpenBLAS starts threads that outlive any dlclose, so it stays loaded.
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(HP_NOT_FOUND, "matmul: cannot load OpenBLAS (%s); %s",
                dlerror(), Hint);
  void (*setThreads)(int) = nullptr;
  hp_status status =
      find(library, "scipy_openblas_set_num_threads", setThreads);
  if (status == HP_OK)
    status = find(library, "scipy_cblas_sgemm", sgemm);
  if (status == HP_OK)
    status = find(library, "scipy_cblas_dgemm", dgemm);
  if (status == HP_OK)
    status = find(library, "scipy_cblas_sgemv", sgemv);
  if (status == HP_OK)
    status = find(library, "scipy_cblas_dgemv", dgemv);
  if (status == HP_OK)
    setThreads(1);
  return status;
}

hp_status Blas::load() {
  if (loaded.load(std::memory_order_acquire))
    return HP_OK;
  std::lock_guard<std::mutex> lock(mutex);
  if (loaded.load(std::memory_order_relaxed))
    return HP_OK;
  hp_status status = loadLocked();
  if (status == HP_OK)
    loaded.store(true, std::memory_order_release);
  return status;
}

} // namespace hyperparallel::runtime
