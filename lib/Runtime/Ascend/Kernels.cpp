// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Kernels.cpp - Fragments of programs on Ascend ---------------------===//
//
// Beside a program is `kernels.NAME.o` for each fragment, an object of its own
// that Ascend's compiler made, and `kernels.launch`: a line for each with its
// name and the number of blocks that it was scheduled for. Objects are loaded
// when they are first launched. A fragment's arguments are pointers: what it
// reads, then what it writes.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Ascend/Acl.h"
#include "lib/Runtime/CUDA/Device.h"

#include <fstream>

namespace hyperparallel::runtime::cuda {

namespace {

/// What stands behind a FunctionHandle.
struct Fragment {
  uint32_t blocks = 0;
  ascend::Handle binary = nullptr;
  ascend::Handle function = nullptr;
};
/// What stands behind a ModuleHandle: a program's fragments on a device.
using Fragments = std::map<std::string, Fragment>;

Fragments &fragmentsOf(ModuleHandle module) {
  return *reinterpret_cast<Fragments *>(module);
}

hp_status loadFragment(Program &program, Device &device,
                       const std::string &name, Fragment &fragment) {
  ascend::Acl &acl = ascend::acl();
  std::string path = program.path.substr(0, program.path.rfind('/') + 1) +
                     "kernels." + name + ".o";
  if (!fragment.binary && acl.binaryLoad(path.c_str(), nullptr,
                                         &fragment.binary) != ascend::Success) {
    fragment.binary = nullptr;
    const char *words = acl.message();
    return fail(HP_NOT_FOUND,
                "the fragments of program '%s' do not load on %s: %s; compile "
                "it with --soc %s where CANN's hivmc is on the PATH",
                program.path.c_str(), device.name.c_str(),
                words ? words : "unknown error", device.name.c_str());
  }
  if (acl.binaryFunction(fragment.binary, name.c_str(), &fragment.function) !=
      ascend::Success)
    return fail(HP_NOT_FOUND, "'%s' has no fragment '%s'; compile it again",
                path.c_str(), name.c_str());
  return HP_OK;
}

} // namespace

hp_status findFunction(Program &program, Device &device, const char *name,
                       FunctionHandle *out) {
  std::lock_guard<std::mutex> lock(program.mutex);
  ModuleHandle &module = program.modules[device.ordinal];
  if (!module) {
    auto fragments = std::make_unique<Fragments>();
    std::ifstream file(program.path.substr(0, program.path.rfind('/') + 1) +
                       "kernels.launch");
    std::string known;
    for (uint32_t blocks = 0; file >> known >> blocks;)
      (*fragments)[known].blocks = blocks;
    module = reinterpret_cast<ModuleHandle>(fragments.release());
  }
  auto found = fragmentsOf(module).find(name);
  if (found == fragmentsOf(module).end())
    return fail(HP_NOT_FOUND, "program '%s' has no fragment '%s'",
                program.path.c_str(), name);
  hp_status status = HP_OK;
  if (!found->second.function)
    status = loadFragment(program, device, name, found->second);
  *out = reinterpret_cast<FunctionHandle>(&found->second);
  return status;
}

Result unloadFragments(ModuleHandle module) {
  Result result = Success;
  for (auto &[name, fragment] : fragmentsOf(module)) {
    Result ended =
        fragment.binary ? ascend::acl().binaryUnload(fragment.binary) : Success;
    result = result == Success ? ended : result;
  }
  delete &fragmentsOf(module);
  return result;
}

/// The grid is the compiler's; what the caller says is for other devices, and
/// is only held to what these would refuse.
hp_status launchFunction(Device &device, FunctionHandle function,
                         const int64_t grid[3], const int64_t block[3], int64_t,
                         void **args, int64_t count, StreamHandle stream) {
  for (int i = 0; i < 3; ++i)
    if (grid[i] < 1 || block[i] < 1)
      return fail(HP_INVALID_ARGUMENT,
                  "launch: expected at least one block of one thread in each "
                  "direction");
  const auto &fragment = *reinterpret_cast<const Fragment *>(function);
  uint64_t packed[MaxArguments];
  if (count > MaxArguments)
    return fail(HP_UNIMPLEMENTED, "a fragment has more than %d arguments",
                MaxArguments);
  for (int64_t i = 0; i < count; ++i)
    packed[i] = *static_cast<const uint64_t *>(args[i]);
  return device.context->driver.check(
      ascend::acl().launch(fragment.function, fragment.blocks, packed,
                           static_cast<size_t>(count) * sizeof(*packed),
                           nullptr, reinterpret_cast<ascend::Handle>(stream)),
      "launching a fragment");
}

} // namespace hyperparallel::runtime::cuda
