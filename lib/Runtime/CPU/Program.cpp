// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Program.cpp - Loads shared objects of compiled entries ------------===//

#include "lib/Runtime/CPU/Device.h"
#include "lib/Runtime/ProgramFile.h"
#include "lib/Runtime/Status.h"

#include <dlfcn.h>

namespace hyperparallel::runtime {

/// Compiled programs name no library that they need: they find hp_rt_* among
/// the process's global symbols, so this library is made one of them.
static hp_status makeOwnSymbolsGlobal() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&hp_rt_alloc), &info) || !info.dli_fname)
    return fail(HP_INTERNAL, "cannot tell where the runtime was loaded from");
  if (dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL))
    return HP_OK;
  // Linked into an executable: its own symbols are global already.
  return dlsym(RTLD_DEFAULT, "hp_rt_alloc")
             ? HP_OK
             : fail(HP_INTERNAL, "cannot export the runtime's symbols: %s",
                    dlerror());
}

hp_status loadProgram(Context &context, const char *path, hp_program **out) {
  if (!path || !out)
    return fail(HP_INVALID_ARGUMENT,
                "hp_program_load: expected a path and a place for the result");
  static const hp_status exported = makeOwnSymbolsGlobal();
  if (exported != HP_OK)
    return fail(exported, "cannot make the runtime's symbols global");
  // A name without a slash would be looked up in the system's directories.
  std::string file = path;
  if (file.find('/') == std::string::npos)
    file = "./" + file;
  hp_status status = checkProgramFile(file.c_str());
  if (status != HP_OK)
    return status;
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(HP_NOT_FOUND, "cannot load the program '%s': %s", path,
                dlerror());
  auto *abi = static_cast<const uint32_t *>(dlsym(library, "hp_program_abi"));
  if (abi && *abi != HP_ABI_VERSION) {
    status = fail(
        HP_INVALID_ARGUMENT,
        "program '%s' was compiled for runtime ABI version %u but this is %u; "
        "compile it again",
        path, *abi, HP_ABI_VERSION);
    dlclose(library);
    return status;
  }
  *out = reinterpret_cast<hp_program *>(
      new Program{context.backend, library, path});
  return HP_OK;
}

hp_status findEntry(Program &program, const char *entry, hp_entry_fn *out) {
  void *symbol = entry ? dlsym(program.library, entry) : nullptr;
  if (!symbol)
    return fail(HP_NOT_FOUND, "program '%s' has no entry '%s'",
                program.path.c_str(), entry ? entry : "");
  if (out)
    *out = reinterpret_cast<hp_entry_fn>(symbol);
  return HP_OK;
}

hp_status unloadProgram(Program *program) {
  dlclose(program->library);
  delete program;
  return HP_OK;
}

} // namespace hyperparallel::runtime
