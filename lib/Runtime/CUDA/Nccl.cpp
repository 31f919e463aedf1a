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

hp_status nccl::findReduction(int64_t dtype, int64_t op, int *type, int *how) {
  static const int types[] = {Uint8,   Int8,     -1,      Int32,  Int64,
                              Float16, Bfloat16, Float32, Float64};
  *type = dtypeBytes(dtype) > 0 ? types[dtype] : -1;
  bool isFloat = dtype >= HP_F16;
  *how = op == HP_SUM              ? Sum
         : op == HP_MAX            ? Max
         : op == HP_MIN            ? Min
         : op == HP_PROD           ? Prod
         : op == HP_AVG && isFloat ? Avg
                                   : -1;
  if (dtype == HP_I1) // bytes of 0 and 1
    *how = op == HP_OR ? Max : op == HP_AND || op == HP_PROD ? Min : -1;
  return *type >= 0 && *how >= 0
             ? HP_OK
             : fail(HP_UNIMPLEMENTED, "NCCL has no %s of %s elements",
                    reductionName(op), dtypeName(dtype));
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
