// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- GeneratedCalls.cpp - What compiled programs call on "cuda" --------===//
//
// The functions behind a program's slots (hp_backend.h). None waits
// for the device, but for those that give the host a value of its memory.
//
// A copy between tiers
//
//   compute  ──▶ record A                       wait B ──▶ uses the target
//   H2D / D2H         └▶ wait A ─▶ copy ─▶ record B ┘
//
// begins when everything queued before it is done (the source was computed, or
// the target's memory was last used, by that), and what is queued after its
// wait sees the target.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CUDA/Collectives.h"
#include "lib/Runtime/CUDA/Matmul.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace hyperparallel::runtime::cuda {

[[noreturn]] static void leave(hp_status status) {
  std::longjmp(*threadState().exit, status);
}

Device &currentDevice() {
  Device *device = threadState().device;
  if (device)
    return *device;
  std::fputs("a compiled program was called outside of hp_program_run\n",
             stderr);
  std::abort();
}

void proceed(Device &device, hp_status status) {
  if (status == HP_OK && device.context->stopping)
    status = fail(HP_CANCELLED, "the run was stopped");
  if (status != HP_OK)
    leave(status);
}

void *findIn(const Import *imports, size_t count, const char *name) {
  for (size_t i = 0; i < count; ++i)
    if (!std::strcmp(imports[i].name, name))
      return imports[i].function;
  return nullptr;
}

namespace {

StreamHandle computeOf(Device &device) {
  return device.streams[HP_STREAM_COMPUTE];
}

DevicePointer address(const void *pointer) {
  return reinterpret_cast<DevicePointer>(pointer);
}

void *rtAlloc(int64_t bytes, int32_t tier) {
  Device &device = currentDevice();
  void *pointer = nullptr;
  proceed(device,
          takeRunMemory(device, tier, bytes, computeOf(device), &pointer));
  ++device.stats.allocations;
  return pointer;
}

void rtFree(void *pointer) {
  Device &device = currentDevice();
  proceed(device, giveRunMemory(device, pointer, computeOf(device)));
}

int64_t rtDeviceId() { return currentDevice().launch.rank; }

void rtAssertFail(const char *message) {
  leave(fail(HP_PROGRAM_ERROR, "assertion failed: %s",
             message ? message : "(no message)"));
}

void rtMatmul(const hp_matmul_desc *desc) {
  Device &device = currentDevice();
  hp_status status =
      desc ? HP_OK
           : fail(HP_INVALID_ARGUMENT, "matmul: expected a description");
  proceed(device, status);
  auto describe = [&] {
    return "matmul " + std::to_string(desc->m) + "x" + std::to_string(desc->n) +
           "x" + std::to_string(desc->k);
  };
  proceed(device,
          traced(device, HP_STREAM_COMPUTE, "matmul", -1, describe,
                 [&] { return multiply(device, *desc, computeOf(device)); }));
  ++device.stats.matmuls;
  double flops = 2.0 * static_cast<double>(desc->m) *
                 static_cast<double>(desc->n) * static_cast<double>(desc->k);
  for (int64_t i = 0; i < desc->batch_rank; ++i)
    flops *= static_cast<double>(desc->batch[i]);
  device.stats.matmul_flops += flops;
}

void rtLaunch(const char *name, int64_t blocks, int64_t threads,
              const int64_t *words, int64_t count) {
  Device &device = currentDevice();
  FunctionHandle &function = device.functions[name];
  hp_status status = HP_OK;
  if (!function)
    status = findFunction(*reinterpret_cast<Program *>(device.launch.program),
                          device, name, &function);
  proceed(device, status);
  void *arguments[MaxArguments];
  if (count > MaxArguments)
    leave(fail(HP_UNIMPLEMENTED, "kernel '%s' has more than %d arguments", name,
               MaxArguments));
  for (int64_t i = 0; i < count; ++i)
    arguments[i] = const_cast<int64_t *>(words + i);
  const int64_t grid[3] = {blocks, 1, 1}, block[3] = {threads, 1, 1};
  // The category is that of kernels on "cpu", which reports read.
  proceed(device, traced(
                      device, HP_STREAM_COMPUTE, "parallel_for", -1,
                      [&] { return std::string(name); },
                      [&] {
                        return launchFunction(device, function, grid, block, 0,
                                              arguments, count,
                                              computeOf(device));
                      }));
}

void rtWorkspace(void *pointer, int64_t bytes) {
  Device &device = currentDevice();
  bool isGiven = pointer && bytes > 0;
  device.workspace = isGiven ? alignWorkspace(pointer) : nullptr;
  device.workspaceBytes = isGiven ? static_cast<uint64_t>(bytes) : 0;
}

int32_t *rtAssertionWord() { return currentDevice().assertionWord; }

/// The host waits for everything queued before.
hp_status read(Device &device, void *host, const void *source, int64_t bytes) {
  noteHostPart(device, "the host reads the device's memory");
  Driver &driver = device.context->driver;
  Result result =
      driver.copyAsync(address(host), address(source),
                       static_cast<size_t>(bytes), computeOf(device));
  if (result == Success)
    result = driver.streamSynchronize(computeOf(device));
  return driver.check(result, "reading the device's memory");
}

void rtRead(void *host, const void *source, int64_t bytes) {
  Device &device = currentDevice();
  proceed(device, read(device, host, source, bytes));
}

/// `host` is on the caller's stack: the copy must have left it on return.
void rtWrite(void *target, const void *host, int64_t bytes) {
  Device &device = currentDevice();
  noteHostPart(device, "the host writes to the device's memory");
  Driver &driver = device.context->driver;
  Result result =
      driver.copyAsync(address(target), address(host),
                       static_cast<size_t>(bytes), computeOf(device));
  if (result == Success)
    result = driver.streamSynchronize(computeOf(device));
  proceed(device, driver.check(result, "writing the device's memory"));
}

//===----------------------------------------------------------------------===//
// Copies between tiers
//===----------------------------------------------------------------------===//

hp_status checkTiers(int32_t target, int32_t source) {
  auto isTier = [](int32_t tier) { return tier >= 0 && tier < HP_TIER_COUNT; };
  if (isTier(target) && isTier(source) &&
      (target == HP_TIER_DEVICE) != (source == HP_TIER_DEVICE))
    return HP_OK;
  return fail(HP_INVALID_ARGUMENT,
              "hp_rt_copy_start: expected a copy to the device or from it but "
              "got tiers %d and %d",
              static_cast<int>(source), static_cast<int>(target));
}

template <typename Copies>
hp_status startCopy(Device &device, bool isIncoming, int64_t bytes,
                    void **started, Copies copies) {
  Driver &driver = device.context->driver;
  StreamHandle stream =
      device.streams[isIncoming ? HP_STREAM_H2D : HP_STREAM_D2H];
  Result result = followStream(device, stream, computeOf(device));
  hp_status status = driver.check(result, "copying between tiers");
  if (status == HP_OK)
    status = traced(
        device, isIncoming ? HP_STREAM_H2D : HP_STREAM_D2H, "stream", bytes,
        [&] { return std::string(isIncoming ? "prefetch" : "store"); },
        [&] { return driver.check(copies(driver, stream), "copying"); });
  if (status != HP_OK)
    return status;
  ++device.stats.copies[isIncoming ? 0 : 1];
  device.stats.copied[isIncoming ? 0 : 1] += bytes;
  return addTransfer(device, stream, started);
}

void *rtCopyStart(void *target, int32_t targetTier, const void *source,
                  int32_t sourceTier, int64_t bytes) {
  Device &device = currentDevice();
  proceed(device, checkTiers(targetTier, sourceTier));
  void *started = nullptr;
  proceed(device, startCopy(device, targetTier == HP_TIER_DEVICE, bytes,
                            &started, [&](Driver &driver, StreamHandle stream) {
                              return bytes == 0
                                         ? Success
                                         : driver.copyAsync(
                                               address(target), address(source),
                                               static_cast<size_t>(bytes),
                                               stream);
                            }));
  return started;
}

/// The rows are known to the device; the host waits for their numbers.
hp_status startRows(Device &device, void *target, const void *source,
                    int64_t rowBytes, int64_t numRows, const int64_t *rows,
                    int64_t count, void **started) {
  std::vector<int64_t> wanted(count);
  hp_status status = read(device, wanted.data(), rows,
                          count * static_cast<int64_t>(sizeof(int64_t)));
  if (status != HP_OK)
    return status;
  for (int64_t row : wanted)
    if (row < 0 || row >= numRows)
      return fail(HP_PROGRAM_ERROR,
                  "expected the index of one of %lld rows but got %lld",
                  static_cast<long long>(numRows), static_cast<long long>(row));
  return startCopy(device, /*isIncoming=*/true, rowBytes * count, started,
                   [&](Driver &driver, StreamHandle stream) {
                     Result result = Success;
                     for (int64_t i = 0; result == Success && i < count; ++i)
                       result = driver.copyAsync(
                           address(target) + i * rowBytes,
                           address(source) + wanted[i] * rowBytes,
                           static_cast<size_t>(rowBytes), stream);
                     return result;
                   });
}

void *rtCopyRowsStart(void *target, const void *source, int32_t sourceTier,
                      int64_t rowBytes, int64_t numRows, const int64_t *rows,
                      int64_t count) {
  Device &device = currentDevice();
  proceed(device, checkTiers(HP_TIER_DEVICE, sourceTier));
  void *started = nullptr;
  proceed(device, startRows(device, target, source, rowBytes, numRows, rows,
                            count, &started));
  return started;
}

void rtLabel(const char *) {}
hp_status beginRange(Device &device, const char *name) {
  return device.tracer.isOn()
             ? device.tracer.begin(device, HP_STREAM_COMPUTE, "range", name, -1)
             : HP_OK;
}

void rtRangeBegin(const char *name) {
  Device &device = currentDevice();
  proceed(device, beginRange(device, name));
}
void rtRangeEnd() {
  Device &device = currentDevice();
  proceed(device, device.tracer.end(device));
}

void *findImport(const char *name) {
  static const Import imports[] = {
      makeImport("hp_rt_alloc", rtAlloc),
      makeImport("hp_rt_free", rtFree),
      makeImport("hp_rt_device_id", rtDeviceId),
      makeImport("hp_rt_assert_fail", rtAssertFail),
      makeImport("hp_rt_matmul", rtMatmul),
      makeImport("hp_rt_launch", rtLaunch),
      makeImport("hp_rt_workspace", rtWorkspace),
      makeImport("hp_rt_assertion_word", rtAssertionWord),
      makeImport("hp_rt_read", rtRead),
      makeImport("hp_rt_write", rtWrite),
      makeImport("hp_rt_copy_start", rtCopyStart),
      makeImport("hp_rt_copy_rows_start", rtCopyRowsStart),
      makeImport("hp_rt_label", rtLabel),
      makeImport("hp_rt_range_begin", rtRangeBegin),
      makeImport("hp_rt_range_end", rtRangeEnd),
  };
  if (void *found = findIn(imports, sizeof(imports) / sizeof(*imports), name))
    return found;
  if (void *found = findVendorImport(name))
    return found;
  if (void *found = findStreamCall(name))
    return found;
  if (void *found = findMessage(name))
    return found;
  return findCollective(name);
}

} // namespace

hp_status bindImports(Program &program) {
  auto *names = static_cast<const char *>(
      dlsym(program.library, "hp_program_import_names"));
  auto **slots =
      static_cast<void **>(dlsym(program.library, "hp_program_import_slots"));
  if (!names || !slots)
    return fail(HP_INVALID_ARGUMENT,
                "program '%s' was not compiled for a device with kernels; "
                "compile it with --target %s",
                program.path.c_str(), vendor().name);
  for (; *names; names += std::strlen(names) + 1, ++slots)
    if (!(*slots = findImport(names)))
      return fail(HP_UNIMPLEMENTED,
                  "program '%s' calls %s, which back end '%s' does not "
                  "implement",
                  program.path.c_str(), names, vendor().name);
  return HP_OK;
}

} // namespace hyperparallel::runtime::cuda
