// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeCuda.cpp - A fake NVIDIA driver (a test double) ---------------===//
//
// See FakeCuda.h. Environment:
//
//   HP_FAKE_CUDA_DEVICES     how many GPUs there are (4)
//   HP_FAKE_CUDA_CAPABILITY  such as 90 (127: no real one, so that PTX is used)
//   HP_FAKE_CUDA_BYTES       memory of each (8 GiB)
//   HP_FAKE_CUDA_REPORT      a file that gets, at exit, what was done, as JSON
//
//===----------------------------------------------------------------------===//

#include "test/Runtime/fakes/FakeCuda.h"
#include "lib/Runtime/CUDA/Driver.h"
#include "test/Runtime/fakes/Ptx.h"
#include "test/Runtime/fakes/Timelines.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <sys/mman.h>

#define FAKE extern "C" __attribute__((visibility("default")))

using namespace fake;
using hyperparallel::runtime::cuda::Copy2D;
using hyperparallel::runtime::cuda::DevicePointer;

namespace {

constexpr int Success = 0, InvalidValue = 1, OutOfMemory = 2,
              NoBinaryForGpu = 209, InvalidPtx = 218, InvalidContext = 201,
              InvalidHandle = 400, NotFound = 500, Refused = 999;

struct FakeStream {
  size_t timeline;
  int device;
  Action current; ///< of a library, between begin and end
};

struct FakeEvent {
  bool recorded = false;
  Clock clock;
  int64_t time = 0;
};

struct FakeFunction {
  const Kernel *kernel;
  int device;
};

struct FakeModule {
  Module module;
  int device;
  std::vector<std::unique_ptr<FakeFunction>> functions;
};

int64_t number(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::strtoll(text, nullptr, 10) : otherwise;
}

struct Driver {
  std::mutex mutex;
  bool isStarted = false;
  int devices = static_cast<int>(number("HP_FAKE_CUDA_DEVICES", 4));
  uint64_t bytes =
      static_cast<uint64_t>(number("HP_FAKE_CUDA_BYTES", int64_t(8) << 30));
  Timelines timelines;
  MemoryMap memory{timelines};
  std::set<FakeStream *> streams;
  std::set<FakeEvent *> events;
  std::set<FakeModule *> modules;
  std::string message = "no error";
  char *arena = nullptr;
  uint64_t arenaUsed = 0;
  int64_t launches = 0, copies = 0, libraryCalls = 0, waits = 0, refusals = 0;

  ~Driver() {
    const char *path = std::getenv("HP_FAKE_CUDA_REPORT");
    std::FILE *file = path && *path ? std::fopen(path, "w") : nullptr;
    if (!file)
      return;
    std::fprintf(
        file,
        "{\"launches\": %lld, \"copies\": %lld, \"library_calls\": "
        "%lld, \"waits\": %lld, \"refusals\": %lld}\n",
        static_cast<long long>(launches), static_cast<long long>(copies),
        static_cast<long long>(libraryCalls), static_cast<long long>(waits),
        static_cast<long long>(refusals));
    std::fclose(file);
  }

  int refuse(const std::string &what) {
    ++refusals;
    message = "fake GPU: " + what;
    std::fprintf(stderr, "%s\n", message.c_str());
    return Refused;
  }
};

Driver &driver() {
  static Driver instance;
  return instance;
}

thread_local int currentDevice = -1;

/// The host's timeline. How threads of the host order each other cannot be seen
/// from here, so they are one.
size_t hostTimeline(Driver &d) {
  static const size_t timeline = d.timelines.add("the host");
  return timeline;
}

Clock &hostClock(Driver &d) { return d.timelines.clock(hostTimeline(d)); }

constexpr uint64_t ArenaBytes = uint64_t(256) << 30;

/// Memory whose address was never used before.
void *reserve(Driver &d, uint64_t bytes) {
  if (!d.arena) {
    void *mapped = mmap(nullptr, ArenaBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
      return nullptr;
    d.arena = static_cast<char *>(mapped);
  }
  // A gap, so that a block's end is nobody's begin.
  uint64_t room = (bytes + 511) / 256 * 256;
  if (d.arenaUsed + room > ArenaBytes)
    return nullptr;
  char *pointer = d.arena + d.arenaUsed;
  d.arenaUsed += room;
  std::memset(pointer, 0xff, bytes);
  return pointer;
}

FakeStream *streamOf(Driver &d, void *handle) {
  auto *stream = static_cast<FakeStream *>(handle);
  return d.streams.count(stream) ? stream : nullptr;
}

Action beginOn(Driver &d, FakeStream *stream, const std::string &what) {
  size_t host = hostTimeline(d);
  d.timelines.begin(host, {}, "queueing");
  return d.timelines.begin(stream->timeline, d.timelines.clock(host), what);
}

/// The host knows all that a stream has done.
void waitFor(Driver &d, const FakeStream *stream) {
  ++d.waits;
  learn(hostClock(d), d.timelines.clock(stream->timeline));
}

void waitForAll(Driver &d, int device) {
  for (FakeStream *stream : d.streams)
    if (stream->device == device)
      waitFor(d, stream);
}

/// HP_FAKE_STREAM(stream, handle): the stream, or leaves with an error.
#define FAKE_STREAM(NAME, HANDLE)                                              \
  FakeStream *NAME = streamOf(d, HANDLE);                                      \
  if (!NAME)                                                                   \
    return InvalidHandle;                                                      \
  if (NAME->device != currentDevice)                                           \
  return d.refuse("a stream of GPU " + std::to_string(NAME->device) +          \
                  " was used while GPU " + std::to_string(currentDevice) +     \
                  " was current")

} // namespace

//===----------------------------------------------------------------------===//
// For the other fakes
//===----------------------------------------------------------------------===//

FAKE int hp_fake_cuda_refuse(const char *message) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  return d.refuse(message);
}

FAKE int hp_fake_cuda_begin(void *handle, const char *what) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  stream->current = beginOn(d, stream, what);
  ++d.libraryCalls;
  return Success;
}

FAKE int hp_fake_cuda_access(void *handle, uint64_t address, uint64_t bytes,
                             int writes) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  std::string fault =
      d.memory.touch(stream->current, address, bytes, writes != 0);
  return fault.empty() ? Success : d.refuse(fault);
}

FAKE int hp_fake_cuda_end(void *) { return Success; }

//===----------------------------------------------------------------------===//
// Devices and contexts
//===----------------------------------------------------------------------===//

FAKE int cuInit(unsigned flags) {
  driver().isStarted = true;
  return flags == 0 ? Success : InvalidValue;
}

FAKE int cuDriverGetVersion(int *version) {
  *version = 13000;
  return Success;
}

FAKE int cuGetErrorString(int result, const char **text) {
  static thread_local std::string kept;
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  kept = result == Refused || result == InvalidPtx ? d.message
         : result == OutOfMemory                   ? "fake GPU: out of memory"
         : result == NoBinaryForGpu ? "fake GPU: only PTX runs here"
         : result == NotFound       ? "fake GPU: not found"
         : result == InvalidHandle  ? "fake GPU: not a handle"
         : result == InvalidContext ? "fake GPU: no current context"
                                    : "fake GPU: invalid value";
  *text = kept.c_str();
  return Success;
}

FAKE int cuDeviceGetCount(int *count) {
  *count = driver().devices;
  return driver().isStarted ? Success : InvalidContext;
}

FAKE int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < driver().devices ? Success : InvalidValue;
}

FAKE int cuDeviceGetName(char *name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length),
                "HyperParallel fake GPU (a test double on the CPU)");
  return Success;
}

FAKE int cuDeviceGetAttribute(int *value, int attribute, int) {
  int capability = static_cast<int>(number("HP_FAKE_CUDA_CAPABILITY", 127));
  *value = attribute == 75 ? capability / 10 : capability % 10;
  return attribute == 75 || attribute == 76 ? Success : InvalidValue;
}

FAKE int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = reinterpret_cast<void *>(intptr_t(device + 1));
  return Success;
}

FAKE int cuDevicePrimaryCtxRelease_v2(int) { return Success; }

FAKE int cuCtxSetCurrent(void *context) {
  currentDevice = static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
  return currentDevice < driver().devices ? Success : InvalidContext;
}

FAKE int cuCtxSynchronize() {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  if (currentDevice < 0)
    return InvalidContext;
  waitForAll(d, currentDevice);
  return Success;
}

FAKE int cuDeviceGetDefaultMemPool(void **pool, int device) {
  *pool = reinterpret_cast<void *>(intptr_t(device + 1));
  return Success;
}

FAKE int cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
  return pool && value && attribute == 4 ? Success : InvalidValue;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static int allocate(Driver &d, DevicePointer *out, uint64_t bytes,
                    const Action *action) {
  if (currentDevice < 0)
    return InvalidContext;
  if (bytes == 0)
    return InvalidValue;
  if (d.memory.inUse(currentDevice) + bytes > d.bytes)
    return OutOfMemory;
  void *memory = reserve(d, bytes);
  if (!memory)
    return OutOfMemory;
  *out = reinterpret_cast<uint64_t>(memory);
  d.memory.add(*out, bytes, true, currentDevice, action);
  return Success;
}

FAKE int cuMemAlloc_v2(DevicePointer *out, size_t bytes) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  return allocate(d, out, bytes, nullptr);
}

FAKE int cuMemAllocAsync(DevicePointer *out, size_t bytes, void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  Action action = beginOn(d, stream, "an allocation");
  return allocate(d, out, bytes, &action);
}

static int release(Driver &d, const Action &action, uint64_t address,
                   bool isDevice) {
  MemoryMap::Block *block = d.memory.find(address);
  std::string fault = d.memory.release(action, address, isDevice);
  if (!fault.empty())
    return d.refuse(fault);
  // Whole pages go back; the addresses stay taken.
  uint64_t first = (block->begin + 4095) / 4096 * 4096;
  uint64_t last = (block->begin + block->bytes) / 4096 * 4096;
  if (last > first)
    madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
  return Success;
}

FAKE int cuMemFree_v2(DevicePointer address) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  waitForAll(d, currentDevice);
  return release(d, d.timelines.begin(hostTimeline(d), {}, "cuMemFree"),
                 address, true);
}

FAKE int cuMemFreeAsync(DevicePointer address, void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  MemoryMap::Block *block = d.memory.find(address);
  if (block && !block->isAsync)
    return d.refuse("cuMemFreeAsync of memory that cuMemAlloc gave");
  return release(d, beginOn(d, stream, "cuMemFreeAsync"), address, true);
}

FAKE int cuMemHostAlloc(void **out, size_t bytes, unsigned) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  *out = reserve(d, bytes);
  if (!*out)
    return OutOfMemory;
  d.memory.add(reinterpret_cast<uint64_t>(*out), bytes, false, -1, nullptr);
  return Success;
}

FAKE int cuMemFreeHost(void *pointer) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  for (int device = 0; device < d.devices; ++device)
    waitForAll(d, device);
  return release(d, d.timelines.begin(hostTimeline(d), {}, "cuMemFreeHost"),
                 reinterpret_cast<uint64_t>(pointer), false);
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

FAKE int cuStreamCreate(void **out, unsigned flags) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  if (currentDevice < 0)
    return InvalidContext;
  if (flags != 1)
    return d.refuse("a stream that waits for stream 0 is not supported");
  auto *stream = new FakeStream();
  stream->timeline =
      d.timelines.add("stream " + std::to_string(d.streams.size()) +
                      " of GPU " + std::to_string(currentDevice));
  stream->device = currentDevice;
  d.streams.insert(stream);
  *out = stream;
  return Success;
}

FAKE int cuStreamDestroy_v2(void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FakeStream *stream = streamOf(d, handle);
  if (!stream)
    return InvalidHandle;
  d.streams.erase(stream);
  delete stream;
  return Success;
}

FAKE int cuStreamSynchronize(void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  waitFor(d, stream);
  return Success;
}

FAKE int cuEventCreate(void **out, unsigned) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *event = new FakeEvent();
  d.events.insert(event);
  *out = event;
  return Success;
}

FAKE int cuEventDestroy_v2(void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *event = static_cast<FakeEvent *>(handle);
  if (!d.events.erase(event))
    return InvalidHandle;
  delete event;
  return Success;
}

FAKE int cuEventRecord(void *handle, void *streamHandle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *event = static_cast<FakeEvent *>(handle);
  FAKE_STREAM(stream, streamHandle);
  if (!d.events.count(event))
    return InvalidHandle;
  Action action = beginOn(d, stream, "an event");
  event->recorded = true;
  event->clock = action.known;
  event->time = std::chrono::steady_clock::now().time_since_epoch().count();
  return Success;
}

FAKE int cuStreamWaitEvent(void *streamHandle, void *handle, unsigned) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *event = static_cast<FakeEvent *>(handle);
  FAKE_STREAM(stream, streamHandle);
  if (!d.events.count(event))
    return InvalidHandle;
  ++d.waits;
  learn(d.timelines.clock(stream->timeline), event->clock);
  return Success;
}

FAKE int cuEventQuery(void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *event = static_cast<FakeEvent *>(handle);
  if (!d.events.count(event))
    return InvalidHandle;
  learn(hostClock(d), event->clock);
  return Success;
}

FAKE int cuEventSynchronize(void *handle) {
  ++driver().waits;
  return cuEventQuery(handle);
}

FAKE int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *from = static_cast<FakeEvent *>(start);
  auto *to = static_cast<FakeEvent *>(end);
  if (!d.events.count(from) || !d.events.count(to) || !from->recorded ||
      !to->recorded)
    return InvalidHandle;
  *milliseconds = static_cast<float>(to->time - from->time) / 1e6f;
  return Success;
}

FAKE int cuLaunchHostFunc(void *handle, void (*function)(void *), void *arg) {
  {
    Driver &d = driver();
    std::lock_guard<std::mutex> lock(d.mutex);
    FAKE_STREAM(stream, handle);
    beginOn(d, stream, "a host function");
  }
  function(arg);
  return Success;
}

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
