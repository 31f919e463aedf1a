// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Ascend/Acl.h"
#include "lib/Runtime/CUDA/Driver.h"

#include <dlfcn.h>

namespace hyperparallel::runtime::ascend {

Acl &acl() {
  static Acl library;
  return library;
}

static thread_local int32_t current = -1;

int32_t currentDevice() { return current; }

Status setCurrentDevice(int32_t number) {
  current = number;
  return acl().setDevice(number);
}

hp_status Acl::load(const char *path) {
  if (loaded)
    return HP_OK;
  void *library = cuda::openLibrary(path, "HP_LIBASCENDCL", "libascendcl.so");
  if (!library)
    return fail(HP_NOT_FOUND,
                "back end 'ascend' needs CANN's libascendcl.so (%s); install "
                "the CANN toolkit and source its set_env.sh, or name the "
                "library in HP_LIBASCENDCL",
                dlerror());
#define HP_ACL_RESOLVE(NAME, MEMBER, RESULT, PARAMETERS)                       \
  MEMBER = reinterpret_cast<RESULT(*) PARAMETERS>(dlsym(library, #NAME));      \
  if (!MEMBER)                                                                 \
    return fail(HP_NOT_FOUND, "libascendcl.so has no " #NAME                   \
                              "; install a newer CANN toolkit");
  HP_ACL_FUNCTIONS(HP_ACL_RESOLVE)
#undef HP_ACL_RESOLVE
#define HP_ACL_RESOLVE(NAME, MEMBER, RESULT, PARAMETERS)                       \
  MEMBER = reinterpret_cast<RESULT(*) PARAMETERS>(dlsym(library, #NAME));
  HP_ACL_GRAPH_FUNCTIONS(HP_ACL_RESOLVE)
#undef HP_ACL_RESOLVE
  Status result = init(nullptr);
  if (result != Success && result != InitialisedBefore)
    return fail(HP_INTERNAL, "starting ACL: error %d", result);
  loaded = true;
  return HP_OK;
}

} // namespace hyperparallel::runtime::ascend
