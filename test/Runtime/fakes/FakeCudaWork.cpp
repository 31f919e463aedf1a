// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeCudaWork.cpp - Copies and kernels of the fake driver ----------===//
//
// See FakeCuda.h.
//
//===----------------------------------------------------------------------===//

#include "test/Runtime/fakes/FakeDriver.h"
#include "test/Runtime/fakes/PtxTraffic.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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
  if (stream->capture)
    return !d.memory.find(to) || !d.memory.find(from)
               ? refuseInCapture(d, "a copy of pageable memory")
               : addToCapture(stream, [=](void *on) {
                   return cuMemcpyAsync(to, from, bytes, on);
                 });
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

FAKE int hp_fake_cuda_device_of(uint64_t address) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  const MemoryMap::Block *block = d.memory.find(address);
  return block && block->isDevice ? block->device : -1;
}

FAKE int cuMemcpyPeerAsync(DevicePointer to, void *toContext,
                           DevicePointer from, void *fromContext, size_t bytes,
                           void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  if (stream->capture)
    return addToCapture(stream, [=](void *on) {
      return cuMemcpyPeerAsync(to, toContext, from, fromContext, bytes, on);
    });
  auto isOn = [&](uint64_t address, void *context) {
    MemoryMap::Block *block = d.memory.find(address);
    return block && block->isDevice &&
           block->device ==
               static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
  };
  if (!isOn(to, toContext) || !isOn(from, fromContext))
    return d.refuse("a copy between GPUs of memory that is another GPU's than "
                    "was said");
  Action action = beginOn(d, stream, "a copy from GPU to GPU");
  action.device = -1;
  std::string fault = touch(d, action, from, bytes, false);
  if (fault.empty())
    fault = touch(d, action, to, bytes, true);
  if (!fault.empty())
    return d.refuse(fault);
  ++d.copies;
  std::memcpy(reinterpret_cast<void *>(to),
              reinterpret_cast<const void *>(from), bytes);
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
  if (stream->capture)
    return addToCapture(stream, [kept = *copy](void *on) {
      return cuMemcpy2DAsync_v2(&kept, on);
    });
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
  if (stream->capture)
    return addToCapture(stream, [=](void *on) {
      return cuMemsetD8Async(to, value, bytes, on);
    });
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
  FAKE_NOT_CAPTURED("cuModuleLoadData");
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

/// What a kernel has touched from one of its pointers on.
struct Touched {
  const MemoryMap::Block *block;
  uint64_t begin, end;
  Range read, written;
};

/// Programs place many buffers in one allocation: the kernel's pointers say
/// where they begin.
class TouchedBuffers {
public:
  TouchedBuffers(Driver &driver, std::vector<uint64_t> pointers)
      : driver(driver), starts(std::move(pointers)) {
    std::sort(starts.begin(), starts.end());
  }

  bool touch(uint64_t address, int bytes, bool writes) {
    auto holds = [&](const Touched &one) {
      return address >= one.begin && address < one.end;
    };
    if (last >= buffers.size() || !holds(buffers[last])) {
      last = static_cast<size_t>(
          std::find_if(buffers.begin(), buffers.end(), holds) -
          buffers.begin());
      if (last == buffers.size() && !add(address))
        return false;
    }
    Touched &one = buffers[last];
    uint64_t end = address + static_cast<uint64_t>(bytes);
    if (end > one.block->begin + one.block->bytes)
      return refuse("over the end of an allocation");
    (writes ? one.written : one.read).add(address, end);
    return true;
  }

  std::vector<Touched> buffers;
  std::string outside; ///< why the last access was refused

private:
  bool refuse(const std::string &why) {
    outside = why;
    return false;
  }

  bool add(uint64_t address) {
    const MemoryMap::Block *block = driver.memory.find(address);
    if (!block)
      return refuse("outside of all allocations");
    if (block->isFreed)
      return refuse("freed by " + block->freedBy);
    auto after = std::upper_bound(starts.begin(), starts.end(), address);
    uint64_t begin = block->begin, end = block->begin + block->bytes;
    if (after != starts.end())
      end = std::min(end, *after);
    if (after != starts.begin())
      begin = std::max(begin, *std::prev(after));
    buffers.push_back({block, begin, end, {}, {}});
    return true;
  }

  Driver &driver;
  std::vector<uint64_t> starts;
  size_t last = 0;
};
} // namespace

static void appendTo(const char *path, const std::string &line) {
  if (std::FILE *file = std::fopen(path, "a")) {
    std::fputs(line.c_str(), file);
    std::fclose(file);
  }
}

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
  std::vector<uint64_t> pointers;
  for (size_t i = 0; i < kernel.parameterSizes.size(); ++i) {
    std::memcpy(packed.data() + kernel.parameterOffsets[i], parameters[i],
                static_cast<size_t>(kernel.parameterSizes[i]));
    uint64_t pointer = 0;
    if (kernel.parameterSizes[i] == sizeof(pointer))
      std::memcpy(&pointer, parameters[i], sizeof(pointer));
    if (d.memory.find(pointer))
      pointers.push_back(pointer);
  }
  if (stream->capture) {
    // The values of the arguments are the call's, not the launch's.
    std::vector<std::vector<uint8_t>> values;
    for (size_t i = 0; i < kernel.parameterSizes.size(); ++i) {
      const auto *bytes = static_cast<const uint8_t *>(parameters[i]);
      values.emplace_back(bytes, bytes + kernel.parameterSizes[i]);
    }
    return addToCapture(stream, [=](void *on) mutable {
      std::vector<void *> arguments;
      for (std::vector<uint8_t> &value : values)
        arguments.push_back(value.data());
      return cuLaunchKernel(handle, gridX, gridY, gridZ, blockX, blockY, blockZ,
                            sharedBytes, on, arguments.data(), nullptr);
    });
  }
  Action action = beginOn(d, stream, "kernel " + kernel.name);
  TouchedBuffers touched(d, std::move(pointers));
  AccessCheck check = [&](uint64_t address, int bytes, bool writes) {
    return touched.touch(address, bytes, writes);
  };
  const uint32_t grid[3] = {gridX, gridY, gridZ};
  const uint32_t block[3] = {blockX, blockY, blockZ};
  std::string fault;
  TrafficCounter traffic;
  const char *told = std::getenv("HP_FAKE_CUDA_TRAFFIC");
  if (!runKernel(kernel, grid, block, packed.data(), sharedBytes, check,
                 told ? &traffic : nullptr, fault))
    return d.refuse(
        fault + (touched.outside.empty() ? "" : " (" + touched.outside + ")"));
  for (const Touched &one : touched.buffers) {
    if (fault.empty() && one.read.high)
      fault = d.memory.touch(action, one.read.low, one.read.high - one.read.low,
                             false);
    if (fault.empty() && one.written.high)
      fault = d.memory.touch(action, one.written.low,
                             one.written.high - one.written.low, true);
  }
  if (told)
    appendTo(told, describeTraffic(traffic.total(), kernel.name,
                                   uint64_t(gridX) * gridY * gridZ, threads));
  ++d.launches;
  return fault.empty() ? Success : d.refuse(fault);
}
