// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Kernels.cpp - Fragments of programs on Ascend ---------------------===//
//
// Beside a program are `kernels.o`, which Ascend's compiler made of its
// fragments, and `kernels.launch`: a line for each with its name and the number
// of blocks that the compiler scheduled it for. A fragment's arguments are
// pointers: what it reads, then what it writes.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Ascend/Acl.h"
#include "lib/Runtime/CUDA/Device.h"

#include <fstream>

namespace hyperparallel::runtime::cuda {

namespace {
std::mutex tableMutex;
/// Blocks of each fragment, by module and name, and by function.
std::map<ModuleHandle, std::map<std::string, uint32_t>> blocksOfModule;
std::unordered_map<FunctionHandle, uint32_t> blocksOfFunction;
} // namespace

hp_status loadModule(Program &program, Device &device) {
  ModuleHandle &module = program.modules[device.ordinal];
  if (module)
    return HP_OK;
  std::string folder = program.path.substr(0, program.path.rfind('/') + 1);
  std::map<std::string, uint32_t> blocks;
  std::ifstream file(folder + "kernels.launch");
  std::string name;
  for (uint32_t count = 0; file >> name >> count;)
    blocks[name] = count;
  ascend::Handle handle = nullptr;
  ascend::Status status = ascend::acl().binaryLoad(
      (folder + "kernels.o").c_str(), nullptr, &handle);
  if (status != ascend::Success) {
    const char *words = ascend::acl().message();
    return fail(HP_NOT_FOUND,
                "the fragments of program '%s' do not load on %s: %s; compile "
                "it with --soc %s where CANN's hivmc is on the PATH",
                program.path.c_str(), device.name.c_str(),
                words ? words : "unknown error", device.name.c_str());
  }
  module = reinterpret_cast<ModuleHandle>(handle);
  std::lock_guard<std::mutex> lock(tableMutex);
  blocksOfModule[module] = std::move(blocks);
  return HP_OK;
}

hp_status findFunction(Program &program, Device &device, const char *name,
                       FunctionHandle *out) {
  std::lock_guard<std::mutex> lock(program.mutex);
  if (hp_status status = loadModule(program, device); status != HP_OK)
    return status;
  ModuleHandle module = program.modules[device.ordinal];
  std::lock_guard<std::mutex> tableLock(tableMutex);
  const auto &blocks = blocksOfModule[module];
  auto found = blocks.find(name);
  if (found == blocks.end() ||
      device.context->driver.moduleFunction(out, module, name) != Success)
    return fail(HP_NOT_FOUND, "program '%s' has no fragment '%s'",
                program.path.c_str(), name);
  blocksOfFunction[*out] = found->second;
  return HP_OK;
}

/// The grid is the compiler's; what the caller says is for other devices.
hp_status launchFunction(Device &device, FunctionHandle function,
                         const int64_t *, const int64_t *, int64_t, void **args,
                         int64_t count, StreamHandle stream) {
  uint32_t blocks = 0;
  {
    std::lock_guard<std::mutex> lock(tableMutex);
    blocks = blocksOfFunction[function];
  }
  uint64_t packed[MaxArguments];
  if (count > MaxArguments)
    return fail(HP_UNIMPLEMENTED, "a fragment has more than %d arguments",
                MaxArguments);
  for (int64_t i = 0; i < count; ++i)
    packed[i] = *static_cast<const uint64_t *>(args[i]);
  return device.context->driver.check(
      ascend::acl().launch(reinterpret_cast<ascend::Handle>(function), blocks,
                           packed, static_cast<size_t>(count) * sizeof(*packed),
                           nullptr, reinterpret_cast<ascend::Handle>(stream)),
      "launching a fragment");
}

} // namespace hyperparallel::runtime::cuda
