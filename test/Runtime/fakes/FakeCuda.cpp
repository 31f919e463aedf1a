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
#include "test/Runtime/fakes/FakeDriver.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sys/mman.h>

using namespace fake;
using hyperparallel::runtime::cuda::Copy2D;
using hyperparallel::runtime::cuda::DevicePointer;

namespace fake {

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
  Action action =
      d.timelines.begin(stream->timeline, d.timelines.clock(host), what);
  action.device = stream->device;
  return action;
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

} // namespace fake

//===----------------------------------------------------------------------===//
// For the other fakes
//===----------------------------------------------------------------------===//

FAKE int hp_fake_cuda_refuse(const char *message) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  return d.refuse(message);
}

FAKE int hp_fake_cuda_current(int device) {
  int before = currentDevice;
  currentDevice = device;
  return before;
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
  FAKE_NOT_CAPTURED("cuCtxSynchronize");
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
  FAKE_NOT_CAPTURED("an allocation");
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
  FAKE_NOT_CAPTURED("a release of memory");
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
  FAKE_NOT_CAPTURED("cuMemHostAlloc");
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
  if (stream->capture)
    return refuseInCapture(d, "cuStreamSynchronize");
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
  if (stream->capture)
    return recordInCapture(event, stream);
  Action action = beginOn(d, stream, "an event");
  event->capture = 0;
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
  if (stream->capture || event->capture)
    return waitInCapture(d, stream, event);
  learn(d.timelines.clock(stream->timeline), event->clock);
  return Success;
}

FAKE int cuEventQuery(void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *event = static_cast<FakeEvent *>(handle);
  if (!d.events.count(event))
    return InvalidHandle;
  if (event->capture)
    return refuseInCapture(d, "a query of an event that was recorded");
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
    if (stream->capture)
      return addToCapture(stream, [=](void *on) {
        return cuLaunchHostFunc(on, function, arg);
      });
    beginOn(d, stream, "a host function");
  }
  function(arg);
  return Success;
}
