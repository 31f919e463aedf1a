// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeCudaWork.cpp - Copies and kernels of the fake driver ----------===//
//
// See FakeCuda.h.
//
//===----------------------------------------------------------------------===//

#include "test/Runtime/fakes/FakeDriver.h"

#include <algorithm>
#include <cstring>

using namespace fake;
using hyperparallel::runtime::cuda::Copy2D;
using hyperparallel::runtime::cuda::DevicePointer;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static std::string nameCopy(Driver &d, uint64_t to, uint64_t from) {
  auto kind = [&](uint64_t address) {
    MemoryMap::Block *block = d.memory.find(address);
    return block && block->isDevice ? "device" : "host";
  };
  return std::string("a copy from ") + kind(from) + " to " + kind(to);
}

/// Notes an access; memory that the driver did not allocate is the host's.
static std::string touch(Driver &d, const Action &action, uint64_t address,
                         uint64_t bytes, bool writes) {
  if (!d.memory.find(address))
    return d.arena && address >= reinterpret_cast<uint64_t>(d.arena) &&
                   address < reinterpret_cast<uint64_t>(d.arena) + ArenaBytes
               ? action.what + " touches memory between allocations"
               : "";
  return d.memory.touch(action, address, bytes, writes);
}

FAKE int cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes,
                       void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  Action action = beginOn(d, stream, nameCopy(d, to, from));
  std::string fault = touch(d, action, from, bytes, false);
  if (fault.empty())
    fault = touch(d, action, to, bytes, true);
  if (!fault.empty())
    return d.refuse(fault);
  ++d.copies;
  std::memcpy(reinterpret_cast<void *>(to),
              reinterpret_cast<const void *>(from), bytes);
  if (!d.memory.find(to)) // pageable memory: the call waits
    waitFor(d, stream);
  return Success;
}

FAKE int cuMemcpy2DAsync_v2(const Copy2D *copy, void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  if (copy->srcMemoryType != 4 || copy->dstMemoryType != 4 ||
      copy->srcPitch < copy->widthInBytes ||
      copy->dstPitch < copy->widthInBytes)
    return InvalidValue;
  Action action =
      beginOn(d, stream, nameCopy(d, copy->dstDevice, copy->srcDevice));
  std::string fault;
  for (size_t row = 0; fault.empty() && row < copy->height; ++row) {
    uint64_t from = copy->srcDevice + row * copy->srcPitch;
    uint64_t to = copy->dstDevice + row * copy->dstPitch;
    fault = touch(d, action, from, copy->widthInBytes, false);
    if (fault.empty())
      fault = touch(d, action, to, copy->widthInBytes, true);
    if (fault.empty())
      std::memcpy(reinterpret_cast<void *>(to),
                  reinterpret_cast<const void *>(from), copy->widthInBytes);
  }
  ++d.copies;
  if (!d.memory.find(copy->dstDevice))
    waitFor(d, stream);
  return fault.empty() ? Success : d.refuse(fault);
}

FAKE int cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes,
                         void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  Action action = beginOn(d, stream, "a fill");
  std::string fault = d.memory.touch(action, to, bytes, true);
  if (!fault.empty())
    return d.refuse(fault);
  std::memset(reinterpret_cast<void *>(to), value, bytes);
  return Success;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

FAKE int cuModuleLoadData(void **out, const void *image) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  if (currentDevice < 0)
    return InvalidContext;
  if (std::memcmp(image,
                  "\x7f"
                  "ELF",
                  4) == 0)
    return NoBinaryForGpu;
  auto module = std::make_unique<FakeModule>();
  module->device = currentDevice;
  std::string fault;
  if (!parsePtx(static_cast<const char *>(image), module->module, fault)) {
    d.refuse("PTX, " + fault);
    return InvalidPtx;
  }
  for (const auto &variable : module->module.variables)
    d.memory.add(variable.second.address, variable.second.bytes, true,
                 currentDevice, nullptr);
  *out = module.get();
  d.modules.insert(module.release());
  return Success;
}

FAKE int cuModuleUnload(void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *module = static_cast<FakeModule *>(handle);
  if (!d.modules.erase(module))
    return InvalidHandle;
  waitForAll(d, module->device);
  Action action = d.timelines.begin(hostTimeline(d), {}, "cuModuleUnload");
  std::string fault;
  for (const auto &variable : module->module.variables)
    fault += d.memory.release(action, variable.second.address, true);
  delete module;
  return fault.empty() ? Success : d.refuse(fault);
}

FAKE int cuModuleGetFunction(void **out, void *handle, const char *name) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *module = static_cast<FakeModule *>(handle);
  if (!d.modules.count(module))
    return InvalidHandle;
  auto found = module->module.kernels.find(name);
  if (found == module->module.kernels.end())
    return NotFound;
  module->functions.push_back(std::make_unique<FakeFunction>(
      FakeFunction{&found->second, module->device}));
  *out = module->functions.back().get();
  return Success;
}

FAKE int cuFuncSetAttribute(void *, int attribute, int value) {
  return attribute == 8 && value >= 0 && value <= 227 * 1024 ? Success
                                                             : InvalidValue;
}

namespace {
/// What a kernel has touched of an allocation.
struct Range {
  uint64_t low = ~uint64_t(0), high = 0;
  void add(uint64_t begin, uint64_t end) {
    low = std::min(low, begin);
    high = std::max(high, end);
  }
};

struct Touched {
  const MemoryMap::Block *block;
  Range read, written;
};
} // namespace

FAKE int cuLaunchKernel(void *handle, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned sharedBytes,
                        void *streamHandle, void **parameters, void **extra) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, streamHandle);
  auto *function = static_cast<FakeFunction *>(handle);
  if (!function || extra)
    return InvalidValue;
  const Kernel &kernel = *function->kernel;
  if (function->device != stream->device)
    return d.refuse("kernel " + kernel.name + " was loaded on another GPU");
  uint64_t threads = uint64_t(blockX) * blockY * blockZ;
  if (threads == 0 || threads > 1024 ||
      threads > static_cast<uint64_t>(kernel.mostThreads) ||
      uint64_t(gridX) * gridY * gridZ == 0)
    return d.refuse("kernel " + kernel.name + " cannot have blocks of " +
                    std::to_string(threads) + " threads");
  if (kernel.sharedBytes > 48 * 1024)
    return d.refuse("kernel " + kernel.name +
                    " has more than 48 KiB of "
                    "shared memory");
  std::vector<uint8_t> packed(kernel.parameterBytes + 8);
  for (size_t i = 0; i < kernel.parameterSizes.size(); ++i)
    std::memcpy(packed.data() + kernel.parameterOffsets[i], parameters[i],
                static_cast<size_t>(kernel.parameterSizes[i]));
  Action action = beginOn(d, stream, "kernel " + kernel.name);
  std::vector<Touched> touched;
  size_t last = 0;
  std::string outside;
  AccessCheck check = [&](uint64_t address, int bytes, bool writes) {
    uint64_t end = address + static_cast<uint64_t>(bytes);
    auto holds = [&](const Touched &one) {
      return address >= one.block->begin &&
             end <= one.block->begin + one.block->bytes;
    };
    if (last >= touched.size() || !holds(touched[last])) {
      auto found = std::find_if(touched.begin(), touched.end(), holds);
      if (found == touched.end()) {
        const MemoryMap::Block *block = d.memory.find(address);
        if (!block || end > block->begin + block->bytes || block->isFreed) {
          outside = !block           ? "outside of all allocations"
                    : block->isFreed ? "freed by " + block->freedBy
                                     : "over the end of an allocation";
          return false;
        }
        touched.push_back({block, {}, {}});
        found = std::prev(touched.end());
      }
      last = static_cast<size_t>(found - touched.begin());
    }
    (writes ? touched[last].written : touched[last].read).add(address, end);
    return true;
  };
  const uint32_t grid[3] = {gridX, gridY, gridZ};
  const uint32_t block[3] = {blockX, blockY, blockZ};
  std::string fault;
  if (!runKernel(kernel, grid, block, packed.data(), sharedBytes, check, fault))
    return d.refuse(fault + (outside.empty() ? "" : " (" + outside + ")"));
  for (const Touched &one : touched) {
    if (fault.empty() && one.read.high)
      fault = d.memory.touch(action, one.read.low, one.read.high - one.read.low,
                             false);
    if (fault.empty() && one.written.high)
      fault = d.memory.touch(action, one.written.low,
                             one.written.high - one.written.low, true);
  }
  ++d.launches;
  return fault.empty() ? Success : d.refuse(fault);
}
