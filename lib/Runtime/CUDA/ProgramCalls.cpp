// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- ProgramCalls.cpp - Programs and their kernels ---------------------===//
//
// A program is a shared object of host code, and kernels beside it in the same
// folder (Kernels.cpp).
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CUDA/Device.h"
#include "lib/Runtime/ProgramFile.h"

#include <cstring>
#include <dlfcn.h>

namespace hyperparallel::runtime::cuda {

hp_status loadProgram(Context &context, const char *path, hp_program **out) {
  if (!path || !out)
    return fail(HP_INVALID_ARGUMENT,
                "hp_program_load: expected a path and a place for the result");
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
  auto program = std::make_unique<Program>();
  program->backend = context.backend;
  program->context = &context;
  program->library = library;
  program->path = file;
  program->modules.resize(context.devices.size());
  auto *abi = static_cast<const uint32_t *>(dlsym(library, "hp_program_abi"));
  if (abi && *abi != HP_ABI_VERSION)
    status = fail(
        HP_INVALID_ARGUMENT,
        "program '%s' was compiled for runtime ABI version %u but this is %u; "
        "compile it again",
        path, *abi, HP_ABI_VERSION);
  if (status == HP_OK)
    status = bindImports(*program);
  if (status != HP_OK) {
    dlclose(library);
    return status;
  }
  if (auto *texts =
          static_cast<const char *>(dlsym(library, "hp_program_assertions")))
    for (; *texts; texts += std::strlen(texts) + 1)
      program->assertions.push_back(texts);
  {
    std::lock_guard<std::mutex> lock(context.programMutex);
    context.programs.insert(program.get());
  }
  *out = reinterpret_cast<hp_program *>(program.release());
  return HP_OK;
}

void unloadModules(Program &program) {
  Driver &driver = program.context->driver;
  for (size_t i = 0; i < program.modules.size(); ++i) {
    Device &device = *program.context->devices[i];
    if (!program.modules[i] || enter(device) != HP_OK)
      continue;
    driver.contextSynchronize();
    forgetSteps(device, &program);
    driver.moduleUnload(program.modules[i]);
    device.functions.clear();
    program.modules[i] = nullptr;
  }
}

hp_status unloadProgram(Program *program) {
  if (Context *context = program->context) {
    unloadModules(*program);
    std::lock_guard<std::mutex> lock(context->programMutex);
    context->programs.erase(program);
  }
  dlclose(program->library);
  delete program;
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

namespace {

Program &programOf(hp_program *program) {
  return *reinterpret_cast<Program *>(program);
}

hp_status load(hp_context *context, const char *path, hp_program **out) {
  return loadProgram(*reinterpret_cast<Context *>(context), path, out);
}
hp_status hasEntry(hp_program *program, const char *entry) {
  return findEntry(programOf(program), entry, nullptr);
}
hp_status unload(hp_program *program) {
  return unloadProgram(&programOf(program));
}

hp_status getKernel(hp_program *handle, const char *name, hp_kernel **out) {
  if (!name || !out)
    return fail(HP_INVALID_ARGUMENT,
                "hp_kernel_get: expected a name and a place for the result");
  Program &program = programOf(handle);
  Device &first = *program.context->devices.front();
  FunctionHandle function = nullptr;
  hp_status status = enter(first);
  if (status == HP_OK)
    status = findFunction(program, first, name, &function);
  if (status != HP_OK)
    return status;
  auto kernel = std::make_unique<Kernel>();
  kernel->backend = program.backend;
  kernel->program = &program;
  kernel->name = name;
  *out = reinterpret_cast<hp_kernel *>(kernel.get());
  program.kernels.push_back(std::move(kernel));
  return HP_OK;
}

hp_status launchKernel(hp_kernel *handle, const int64_t *grid,
                       const int64_t *block, int64_t sharedBytes, void **args,
                       int64_t numArgs, hp_stream *stream) {
  if (!grid || !block || !stream || (numArgs > 0 && !args))
    return fail(HP_INVALID_ARGUMENT,
                "hp_kernel_launch: expected a grid, a block, arguments and a "
                "stream");
  auto &kernel = *reinterpret_cast<Kernel *>(handle);
  auto &queue = *reinterpret_cast<Stream *>(stream);
  FunctionHandle function = nullptr;
  hp_status status = enter(*queue.device);
  if (status == HP_OK)
    status = findFunction(*kernel.program, *queue.device, kernel.name.c_str(),
                          &function);
  return status == HP_OK
             ? launchFunction(*queue.device, function, grid, block, sharedBytes,
                              args, numArgs, queue.handle)
             : status;
}

} // namespace

void addProgramEntries(hp_backend_v1 &table) {
  table.program_load = load;
  table.program_has_entry = hasEntry;
  table.program_unload = unload;
  table.kernel_get = getKernel;
  table.kernel_launch = launchKernel;
}

} // namespace hyperparallel::runtime::cuda
