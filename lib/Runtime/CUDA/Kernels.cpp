// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Kernels.cpp - Kernels of programs on GPUs -------------------------===//
//
// Beside a program are `kernels.sm_NN.cubin` for some architectures, and
// `kernels.ptx`, which the driver compiles for any that is as new as the oldest
// one it was made for.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CUDA/Device.h"

#include <cstdio>
#include <cstring>

namespace hyperparallel::runtime::cuda {

static bool readFile(const std::string &path, std::string &out) {
  std::FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return false;
  char buffer[65536];
  for (size_t count; (count = std::fread(buffer, 1, sizeof(buffer), file)) > 0;)
    out.append(buffer, count);
  std::fclose(file);
  return true;
}

/// Loads the kernels on a device: its own architecture's, or the driver makes
/// them.
static hp_status loadModule(Program &program, Device &device) {
  ModuleHandle &module = program.modules[device.ordinal];
  if (module)
    return HP_OK;
  std::string folder = program.path.substr(0, program.path.rfind('/') + 1);
  std::string architecture = "sm_" + std::to_string(device.capability);
  std::string image;
  if (!readFile(folder + "kernels." + architecture + ".cubin", image) &&
      !readFile(folder + "kernels.ptx", image))
    return fail(HP_NOT_FOUND,
                "program '%s' has no kernels: neither kernels.%s.cubin nor "
                "kernels.ptx is beside it; compile it again",
                program.path.c_str(), architecture.c_str());
  Driver &driver = device.context->driver;
  Result result = driver.moduleLoad(&module, image.c_str());
  if (result == Success)
    return HP_OK;
  module = nullptr;
  const char *words = nullptr;
  driver.errorString(result, &words);
  return fail(HP_NOT_FOUND,
              "the kernels of program '%s' do not run on %s (%s): %s; compile "
              "it with --arch %s",
              program.path.c_str(), device.name.c_str(), architecture.c_str(),
              words ? words : "unknown error", architecture.c_str());
}

hp_status findFunction(Program &program, Device &device, const char *name,
                       FunctionHandle *out) {
  std::lock_guard<std::mutex> lock(program.mutex);
  if (hp_status status = loadModule(program, device); status != HP_OK)
    return status;
  Driver &driver = device.context->driver;
  if (driver.moduleFunction(out, program.modules[device.ordinal], name) ==
      Success)
    return HP_OK;
  return fail(HP_NOT_FOUND, "program '%s' has no kernel '%s'",
              program.path.c_str(), name);
}

hp_status launchFunction(Device &device, FunctionHandle function,
                         const int64_t grid[3], const int64_t block[3],
                         int64_t sharedBytes, void **args, int64_t,
                         StreamHandle stream) {
  for (int i = 0; i < 3; ++i)
    if (grid[i] < 1 || grid[i] > INT32_MAX || block[i] < 1 || block[i] > 1024)
      return fail(HP_INVALID_ARGUMENT,
                  "launch: expected a grid of 1 to 2147483647 blocks of 1 to "
                  "1024 threads in each direction");
  if (sharedBytes < 0 || sharedBytes > 227 * 1024)
    return fail(HP_INVALID_ARGUMENT,
                "launch: expected at most 232448 bytes of shared memory but "
                "got %lld",
                static_cast<long long>(sharedBytes));
  Driver &driver = device.context->driver;
  Result result = Success;
  if (sharedBytes > 48 * 1024)
    result = driver.functionSet(function, FunctionSharedBytes,
                                static_cast<int>(sharedBytes));
  if (result == Success)
    result = driver.launch(
        function, static_cast<unsigned>(grid[0]),
        static_cast<unsigned>(grid[1]), static_cast<unsigned>(grid[2]),
        static_cast<unsigned>(block[0]), static_cast<unsigned>(block[1]),
        static_cast<unsigned>(block[2]), static_cast<unsigned>(sharedBytes),
        stream, args, nullptr);
  return driver.check(result, "launching a kernel");
}

int32_t takeViolation(Device &device) {
  int32_t number = *device.assertionWord;
  *device.assertionWord = 0;
  return number;
}

const Vendor &vendor() {
  static const Vendor names = {"cuda", "GPUs"};
  return names;
}

hp_status applyOption(Context &context, const char *key, const char *value) {
  if (!std::strcmp(key, "libcuda"))
    context.driverPath = value;
  else if (!std::strcmp(key, "libcublaslt"))
    context.products.path = value;
  else if (!std::strcmp(key, "libnccl"))
    context.collectives.path = value;
  else if (!std::strcmp(key, "tf32"))
    context.products.tf32 = !std::strcmp(value, "1");
  else if (!std::strcmp(key, "graphs"))
    context.capturesSteps = std::strcmp(value, "0") != 0;
  else
    return fail(HP_INVALID_ARGUMENT,
                "back end 'cuda' has no option '%s'; it knows libcuda, "
                "libcublaslt, libnccl, tf32 and graphs",
                key);
  return HP_OK;
}

void *findVendorImport(const char *) { return nullptr; }

} // namespace hyperparallel::runtime::cuda
