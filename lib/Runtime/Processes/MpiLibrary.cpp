// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Processes/MpiLibrary.h"
#include "lib/Runtime/Status.h"

#include <dlfcn.h>

namespace hyperparallel::runtime {

std::string MpiLibrary::describe(int error) const {
  char text[MaxErrorString] = "";
  int length = 0;
  if (Error_string(error, text, &length) != 0)
    return "error " + std::to_string(error);
  return std::string(text, static_cast<size_t>(length));
}

template <typename Fn>
static bool find(void *library, const char *name, Fn *out) {
  *out = reinterpret_cast<Fn>(dlsym(library, name));
  return *out != nullptr;
}

hp_status loadMpi(const std::string &path, MpiLibrary *out) {
  const char *name = path.empty() ? "libmpi_abi.so.1" : path.c_str();
  // MPI keeps threads and handlers: it stays loaded.
  void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return fail(HP_NOT_FOUND,
                "cannot load MPI: %s; install one that has the standard ABI "
                "(pip install mpich), or name its libmpi_abi.so.1",
                dlerror());
  bool isWhole =
      find(library, "MPI_Init_thread", &out->Init_thread) &&
      find(library, "MPI_Finalize", &out->Finalize) &&
      find(library, "MPI_Comm_rank", &out->Comm_rank) &&
      find(library, "MPI_Comm_size", &out->Comm_size) &&
      find(library, "MPI_Comm_set_errhandler", &out->Comm_set_errhandler) &&
      find(library, "MPI_Error_string", &out->Error_string) &&
      find(library, "MPI_Isend_c", &out->Isend_c) &&
      find(library, "MPI_Improbe", &out->Improbe) &&
      find(library, "MPI_Imrecv_c", &out->Imrecv_c) &&
      find(library, "MPI_Get_count_c", &out->Get_count_c) &&
      find(library, "MPI_Test", &out->Test);
  int (*version)(int *, int *) = nullptr;
  if (!isWhole || !find(library, "MPI_Abi_get_version", &version))
    return fail(HP_NOT_FOUND,
                "%s is no MPI with the standard ABI of MPI 5; pip install "
                "mpich brings one",
                name);
  return HP_OK;
}

} // namespace hyperparallel::runtime
