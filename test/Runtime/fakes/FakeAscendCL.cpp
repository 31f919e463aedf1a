// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeAscendCL.cpp - A fake of Ascend's runtime (a test double) -----===//
//
// NOT an NPU and not Huawei's code: libhp_fake_ascendcl.so answers the
// functions of libascendcl.so that the back end uses, on the CPU. Devices,
// memory, streams and events are those of the fake driver (FakeCuda.h), which
// orders them by vector clocks, so that a missing wait is an error here, too.
// Besides:
//
//   - waiting for an event that was never recorded is refused: it would wait
//     for ever; so is a time between events that were made without.
//   - memory in a stream's order comes from a pool of the stream's device.
//   - a copy's room is checked against what is copied, and a device reaches
//     another one's memory only once both were told that they may.
//
// What stands for kernels.NAME.o is a twin of kernels.mlir beside it, of which
// the object has the function NAME alone; it is made by the command in
// HP_FAKE_ASCEND_TWIN, which gets the file and prints the path of a shared
// object (hyperparallel.testing.hfusion). Its arguments are checked: their
// number, their sizes, and who reads and writes them when.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Ascend/Acl.h"
#include "lib/Runtime/CUDA/Driver.h"
#include "test/Runtime/fakes/FakeCuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/stat.h>
#include <vector>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace ascend = hyperparallel::runtime::ascend;
using ascend::Handle;
using hyperparallel::runtime::cuda::DevicePointer;

// Of the fake driver.
extern "C" {
int cuInit(unsigned);
int cuDeviceGetCount(int *);
int cuGetErrorString(int, const char **);
int cuCtxSetCurrent(void *);
int cuCtxSynchronize();
int cuMemAlloc_v2(DevicePointer *, size_t);
int cuMemFree_v2(DevicePointer);
int cuMemAllocAsync(DevicePointer *, size_t, void *);
int cuMemFreeAsync(DevicePointer, void *);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemFreeHost(void *);
int cuStreamCreate(void **, unsigned);
int cuStreamDestroy_v2(void *);
int cuStreamSynchronize(void *);
int cuStreamWaitEvent(void *, void *, unsigned);
int cuEventCreate(void **, unsigned);
int cuEventDestroy_v2(void *);
int cuEventRecord(void *, void *);
int cuEventSynchronize(void *);
int cuEventElapsedTime(float *, void *, void *);
int cuMemcpyAsync(DevicePointer, DevicePointer, size_t, void *);
int cuMemcpyPeerAsync(DevicePointer, void *, DevicePointer, void *, size_t,
                      void *);
int cuMemsetD8Async(DevicePointer, unsigned char, size_t, void *);
int cuLaunchHostFunc(void *, void (*)(void *), void *);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cuGraphLaunch(void *, void *);
int cuGraphDestroy(void *);
int cuGraphExecDestroy(void *);
}

namespace {

struct Buffer {
  long bytes;
  int writes;
};
struct Twin {
  const char *name;
  void (*run)(void **);
  int count;
  const Buffer *buffers;
};
struct Binary {
  void *library;
  const Twin *twin;
};
struct Event {
  bool recorded = false, timed = false;
};

constexpr int Invalid = 107000, Refused = 507000;

std::mutex mutex;
bool isStarted = false;
thread_local int32_t device = -1;
std::map<Handle, Event> events;
std::set<std::pair<int32_t, int32_t>> connected; ///< may reach the second

int refuse(const std::string &what) {
  hp_fake_cuda_refuse(("ACL: " + what).c_str());
  return Refused;
}

/// ACL's error for one of the fake driver.
int convert(int result) {
  return result == 0 ? 0 : result == 2 ? ascend::OutOfMemory : Refused;
}

DevicePointer address(const void *pointer) {
  return reinterpret_cast<DevicePointer>(pointer);
}

void *contextOf(int32_t number) {
  return reinterpret_cast<void *>(intptr_t(number) + 1);
}

/// A text of fragments as a shared object.
std::string makeTwin(const std::string &text) {
  const char *maker = std::getenv("HP_FAKE_ASCEND_TWIN");
  if (!maker)
    return "";
  std::string command = std::string(maker) + " '" + text + "'";
  std::FILE *pipe = popen(command.c_str(), "r");
  char line[4096] = "";
  if (!pipe || !std::fgets(line, sizeof(line), pipe))
    line[0] = 0;
  if (pipe)
    pclose(pipe);
  std::string path = line;
  while (!path.empty() && path.back() == '\n')
    path.pop_back();
  return path;
}

/// One thread makes it, and others wait here rather than for each other: a text
/// that is made four times at once takes longer than members of a group wait.
std::string twinOf(const std::string &text) {
  static std::mutex making;
  static std::map<std::string, std::string> made;
  struct stat about = {};
  if (stat(text.c_str(), &about) != 0)
    return "";
  std::string key = text + " " + std::to_string(about.st_ino) + " " +
                    std::to_string(about.st_mtime);
  std::lock_guard<std::mutex> lock(making);
  std::string &twin = made[key];
  if (twin.empty())
    twin = makeTwin(text);
  return twin;
}

} // namespace

FAKE int aclInit(const char *) {
  if (isStarted)
    return ascend::InitialisedBefore;
  isStarted = true;
  return convert(cuInit(0));
}
FAKE const char *aclGetRecentErrMsg() {
  const char *text = "";
  cuGetErrorString(999, &text);
  return text;
}
FAKE int aclrtGetDeviceCount(uint32_t *count) {
  int found = 0;
  int result = cuDeviceGetCount(&found);
  *count = static_cast<uint32_t>(found);
  return convert(result);
}
FAKE int aclrtSetDevice(int32_t number) {
  device = number;
  return convert(cuCtxSetCurrent(contextOf(number)));
}
FAKE const char *aclrtGetSocName() { return "Ascend910B1"; }
FAKE int aclrtSynchronizeDevice() { return convert(cuCtxSynchronize()); }

FAKE int aclrtMalloc(void **out, size_t bytes, int policy) {
  if (policy != ascend::MallocHugeFirst)
    return Invalid;
  DevicePointer pointer = 0;
  int result = cuMemAlloc_v2(&pointer, bytes);
  *out = reinterpret_cast<void *>(pointer);
  return convert(result);
}
FAKE int aclrtFree(void *pointer) {
  return convert(cuMemFree_v2(address(pointer)));
}
FAKE int aclrtMallocHost(void **out, size_t bytes) {
  return convert(cuMemHostAlloc(out, bytes, 1));
}
FAKE int aclrtFreeHost(void *pointer) {
  return convert(cuMemFreeHost(pointer));
}

FAKE int aclrtMemPoolCreate(Handle *pool, const ascend::PoolProps *props) {
  if (props->location.type != ascend::LocationDevice ||
      static_cast<int32_t>(props->location.id) != device)
    return refuse("a pool on a device that is not current");
  *pool = reinterpret_cast<Handle>(intptr_t(device) + 1);
  return 0;
}
FAKE int aclrtMemPoolSetAttr(Handle pool, int attribute, void *value) {
  return pool && attribute == ascend::PoolReleaseThreshold && value ? 0
                                                                    : Invalid;
}
FAKE int aclrtMemPoolMallocAsync(void **out, size_t bytes, Handle pool,
                                 Handle stream) {
  if (reinterpret_cast<intptr_t>(pool) != device + 1)
    return refuse("memory of another device's pool");
  DevicePointer pointer = 0;
  int result = cuMemAllocAsync(&pointer, bytes, stream);
  *out = reinterpret_cast<void *>(pointer);
  return convert(result);
}
FAKE int aclrtMemPoolFreeAsync(void *pointer, Handle stream) {
  return convert(cuMemFreeAsync(address(pointer), stream));
}

FAKE int aclrtCreateStreamWithConfig(Handle *out, uint32_t priority,
                                     uint32_t flags) {
  if (priority > 7 || flags & ~uint32_t(0x3f))
    return Invalid;
  return convert(cuStreamCreate(out, 1));
}
FAKE int aclrtDestroyStream(Handle stream) {
  return convert(cuStreamDestroy_v2(stream));
}
FAKE int aclrtSynchronizeStream(Handle stream) {
  return convert(cuStreamSynchronize(stream));
}

FAKE int aclrtCreateEventExWithFlag(Handle *out, uint32_t flags) {
  if (!(flags & ascend::EventSync))
    return refuse("an event that streams cannot wait for");
  int result = cuEventCreate(out, 0);
  std::lock_guard<std::mutex> lock(mutex);
  events[*out] = {false, (flags & ascend::EventTimeLine) != 0};
  return convert(result);
}
FAKE int aclrtDestroyEvent(Handle event) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    events.erase(event);
  }
  return convert(cuEventDestroy_v2(event));
}
FAKE int aclrtRecordEvent(Handle event, Handle stream) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    events[event].recorded = true;
  }
  return convert(cuEventRecord(event, stream));
}
static bool wasRecorded(Handle event) {
  std::lock_guard<std::mutex> lock(mutex);
  return events[event].recorded;
}
FAKE int aclrtStreamWaitEvent(Handle stream, Handle event) {
  return wasRecorded(event)
             ? convert(cuStreamWaitEvent(stream, event, 0))
             : refuse("a wait for an event that was never recorded");
}
FAKE int aclrtQueryEventStatus(Handle event, int *status) {
  if (!wasRecorded(event)) {
    *status = 0;
    return 0;
  }
  *status = ascend::EventComplete;
  return convert(cuEventSynchronize(event));
}
FAKE int aclrtSynchronizeEvent(Handle event) {
  return wasRecorded(event)
             ? convert(cuEventSynchronize(event))
             : refuse("a wait for an event that was never recorded");
}
FAKE int aclrtEventElapsedTime(float *milliseconds, Handle start, Handle end) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!events[start].timed || !events[end].timed)
      return refuse("the time between events that keep none");
  }
  return convert(cuEventElapsedTime(milliseconds, start, end));
}

FAKE int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t bytes,
                          int kind, Handle stream) {
  if (kind != ascend::CopyDefault && kind != ascend::CopyDeviceToDevice)
    return Invalid;
  if (bytes > room)
    return refuse("a copy of more than there is room for");
  int32_t target = hp_fake_cuda_device_of(address(to));
  int32_t source = hp_fake_cuda_device_of(address(from));
  if (kind == ascend::CopyDeviceToDevice && (target < 0 || source < 0))
    return refuse("a copy between devices of the host's memory");
  if (target >= 0 && source >= 0 && target != source) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!connected.count({target, source}) ||
          !connected.count({source, target}))
        return refuse("a copy between devices that do not reach each other");
    }
    return convert(cuMemcpyPeerAsync(address(to), contextOf(target),
                                     address(from), contextOf(source), bytes,
                                     stream));
  }
  return convert(cuMemcpyAsync(address(to), address(from), bytes, stream));
}
FAKE int aclrtDeviceEnablePeerAccess(int32_t other, uint32_t flags) {
  std::lock_guard<std::mutex> lock(mutex);
  return device >= 0 && other != device && flags == 0 &&
                 connected.insert({device, other}).second
             ? 0
             : refuse("a connection of device " + std::to_string(device) +
                      " to " + std::to_string(other) + " that is there");
}
FAKE int aclrtMemsetAsync(void *to, size_t room, int32_t value, size_t bytes,
                          Handle stream) {
  if (bytes > room)
    return refuse("a fill of more than there is room for");
  return convert(cuMemsetD8Async(address(to), static_cast<unsigned char>(value),
                                 bytes, stream));
}
FAKE int aclrtLaunchHostFunc(Handle stream, void (*function)(void *),
                             void *arg) {
  return convert(cuLaunchHostFunc(stream, function, arg));
}

FAKE int aclrtBinaryLoadFromFile(const char *path, void *options, Handle *out) {
  if (options)
    return Invalid;
  std::string object = path, kernels = "kernels.";
  size_t begin = object.rfind('/') + 1;
  size_t end = object.rfind(".o");
  if (object.compare(begin, kernels.size(), kernels) != 0 ||
      end == std::string::npos || end < begin + kernels.size())
    return refuse("no object of a fragment: " + object);
  std::string name =
      object.substr(begin + kernels.size(), end - begin - kernels.size());
  std::string twin = twinOf(object.substr(0, begin) + "kernels.mlir");
  void *library =
      twin.empty() ? nullptr : dlopen(twin.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto *found =
      library ? static_cast<const Twin *>(dlsym(library, "hp_twins")) : nullptr;
  while (found && found->name && found->name != name)
    ++found;
  if (!found || !found->name)
    return refuse("no twin of " + object);
  *out = new Binary{library, found};
  return 0;
}
FAKE int aclrtBinaryUnLoad(Handle handle) {
  auto *binary = static_cast<Binary *>(handle);
  dlclose(binary->library);
  delete binary;
  return 0;
}
FAKE int aclrtBinaryGetFunction(Handle handle, const char *name, Handle *out) {
  const Twin *twin = static_cast<Binary *>(handle)->twin;
  if (std::strcmp(twin->name, name) != 0)
    return refuse("no function " + std::string(name));
  *out = const_cast<Twin *>(twin);
  return 0;
}
FAKE int aclrtLaunchKernelV2(Handle function, uint32_t blocks, const void *args,
                             size_t bytes, void *config, Handle stream) {
  const Twin &twin = *static_cast<const Twin *>(function);
  std::string name = "fragment " + std::string(twin.name);
  if (blocks == 0 || blocks > 65535 || config)
    return refuse(name + " in " + std::to_string(blocks) + " blocks");
  if (bytes != static_cast<size_t>(twin.count) * sizeof(void *))
    return refuse(name + " with " + std::to_string(bytes) +
                  " bytes of arguments, not " + std::to_string(twin.count) +
                  " pointers");
  // What is captured is launched later: with the arguments of now.
  std::vector<void *> pointers(static_cast<size_t>(twin.count));
  std::memcpy(pointers.data(), args, bytes);
  std::function<int(void *)> work = [&twin, name, pointers](void *on) mutable {
    int result = hp_fake_cuda_begin(on, name.c_str());
    for (int i = 0; result == 0 && i < twin.count; ++i)
      result = hp_fake_cuda_access(on, address(pointers[i]),
                                   static_cast<uint64_t>(twin.buffers[i].bytes),
                                   twin.buffers[i].writes);
    if (result == 0)
      twin.run(pointers.data());
    return result;
  };
  return hp_fake_cuda_defer(stream, &work) ? 0 : convert(work(stream));
}

// A captured model is run as it is: the fake driver's graph, instantiated.
FAKE int aclmdlRICaptureBegin(Handle stream, int mode) {
  return mode == ascend::CaptureThreadLocal
             ? convert(cuStreamBeginCapture_v2(stream, mode))
             : refuse("a capture in another mode");
}
FAKE int aclmdlRICaptureEnd(Handle stream, Handle *out) {
  void *graph = nullptr;
  int result = cuStreamEndCapture(stream, &graph);
  if (result == 0)
    result = cuGraphInstantiateWithFlags(out, graph, 0);
  if (graph)
    cuGraphDestroy(graph);
  return convert(result);
}
FAKE int aclmdlRIExecuteAsync(Handle model, Handle stream) {
  return convert(cuGraphLaunch(model, stream));
}
FAKE int aclmdlRIDestroy(Handle model) {
  return convert(cuGraphExecDestroy(model));
}
