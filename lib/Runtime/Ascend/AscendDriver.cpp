// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- AscendDriver.cpp - ACL under the driver's interface ---------------===//
//
// The back ends for devices with memory of their own share their code, which
// talks to a device by the functions of `Driver`. Here are those of Ascend.
// Where the two differ:
//
//   - A copy has a kind; the default one lets ACL look where the buffers are.
//     Rows of a pitch are copied one by one: aclrtMemcpy2dAsync has no kind
//     for buffers of one device, and none that looks.
//   - Devices reach each other's memory once they were connected.
//   - An event that was never recorded is done; to ACL it would never be. So
//     ours knows whether it was recorded.
//   - Memory in the order of a stream comes from one pool a device.
//   - The context of a device is its number.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Ascend/Acl.h"
#include "lib/Runtime/CUDA/Device.h"

#include <algorithm>
#include <utility>

namespace hyperparallel::runtime::cuda {

Result unloadFragments(ModuleHandle module); // Kernels.cpp

namespace {

using ascend::acl;

struct EventRecord {
  ascend::Handle handle = nullptr;
  bool recorded = false;
};

EventRecord *recordOf(EventHandle event) {
  return reinterpret_cast<EventRecord *>(event);
}
ascend::Handle handleOf(StreamHandle stream) {
  return reinterpret_cast<ascend::Handle>(stream);
}
void *pointerOf(DevicePointer address) {
  return reinterpret_cast<void *>(address);
}

std::mutex poolMutex;
std::map<int32_t, ascend::Handle> pools;

/// The pool of the device that is current on this thread.
Result findPool(ascend::Handle *out) {
  std::lock_guard<std::mutex> lock(poolMutex);
  ascend::Handle &pool = pools[ascend::currentDevice()];
  Result result = Success;
  if (!pool) {
    ascend::PoolProps props;
    props.location.id = static_cast<uint32_t>(ascend::currentDevice());
    result = acl().poolCreate(&pool, &props);
    uint64_t keepAll = ~uint64_t(0);
    if (result == Success)
      result = acl().poolSet(pool, ascend::PoolReleaseThreshold, &keepAll);
  }
  *out = pool;
  return result;
}

Result init(unsigned) { return Success; }
Result driverVersion(int *version) {
  *version = 0;
  return Success;
}
Result errorString(Result, const char **text) {
  *text = acl().message();
  return Success;
}
Result deviceCount(int *count) {
  uint32_t found = 0;
  Result result = acl().deviceCount(&found);
  *count = static_cast<int>(found);
  return result;
}
Result deviceGet(DeviceNumber *number, int ordinal) {
  *number = ordinal;
  return Success;
}
Result deviceName(char *name, int length, DeviceNumber number) {
  Result result = ascend::setCurrentDevice(number);
  const char *soc = result == Success ? acl().socName() : nullptr;
  std::snprintf(name, static_cast<size_t>(length), "%s", soc ? soc : "Ascend");
  return result;
}
Result deviceAttribute(int *value, int, DeviceNumber) {
  *value = 0;
  return Success;
}
Result contextRetain(ContextHandle *context, DeviceNumber number) {
  *context = reinterpret_cast<ContextHandle>(intptr_t(number) + 1);
  return ascend::setCurrentDevice(number);
}
Result contextRelease(DeviceNumber) { return Success; }
int32_t numberOf(ContextHandle context) {
  return static_cast<int32_t>(reinterpret_cast<intptr_t>(context) - 1);
}
Result contextSet(ContextHandle context) {
  return ascend::setCurrentDevice(numberOf(context));
}
Result contextSynchronize() { return acl().synchronizeDevice(); }
Result defaultPool(PoolHandle *pool, DeviceNumber number) {
  *pool = reinterpret_cast<PoolHandle>(intptr_t(number) + 1);
  return Success;
}
Result poolSet(PoolHandle, int, void *) { return Success; }

/// What the shared code asks for by this name.
Result toResult(ascend::Status status) {
  return status == ascend::OutOfMemory || status == ascend::BadAlloc
             ? OutOfMemory
             : status;
}

Result alloc(DevicePointer *out, size_t bytes) {
  void *pointer = nullptr;
  Result result =
      toResult(acl().alloc(&pointer, bytes, ascend::MallocHugeFirst));
  *out = reinterpret_cast<DevicePointer>(pointer);
  return result;
}
Result free(DevicePointer address) { return acl().free(pointerOf(address)); }
Result allocAsync(DevicePointer *out, size_t bytes, StreamHandle stream) {
  void *pointer = nullptr;
  ascend::Handle pool = nullptr;
  Result result = findPool(&pool);
  if (result == Success)
    result =
        toResult(acl().allocAsync(&pointer, bytes, pool, handleOf(stream)));
  *out = reinterpret_cast<DevicePointer>(pointer);
  return result;
}
Result freeAsync(DevicePointer address, StreamHandle stream) {
  return acl().freeAsync(pointerOf(address), handleOf(stream));
}
Result hostAlloc(void **out, size_t bytes, unsigned) {
  return toResult(acl().hostAlloc(out, bytes));
}
Result hostFree(void *pointer) { return acl().hostFree(pointer); }

Result streamCreate(StreamHandle *out, unsigned) {
  return acl().streamCreate(reinterpret_cast<ascend::Handle *>(out),
                            /*priority=*/0,
                            ascend::StreamFastLaunch | ascend::StreamFastSync);
}
Result streamDestroy(StreamHandle stream) {
  return acl().streamDestroy(handleOf(stream));
}
Result streamSynchronize(StreamHandle stream) {
  return acl().streamSynchronize(handleOf(stream));
}
Result streamWait(StreamHandle stream, EventHandle event, unsigned) {
  return recordOf(event)->recorded
             ? acl().streamWait(handleOf(stream), recordOf(event)->handle)
             : Success;
}
Result eventCreate(EventHandle *out, unsigned flags) {
  auto record = std::make_unique<EventRecord>();
  uint32_t timing = flags & EventWithoutTiming ? 0 : ascend::EventTimeLine;
  Result result =
      acl().eventCreate(&record->handle, ascend::EventSync | timing);
  if (result == Success)
    *out = reinterpret_cast<EventHandle>(record.release());
  return result;
}
Result eventDestroy(EventHandle event) {
  Result result = acl().eventDestroy(recordOf(event)->handle);
  delete recordOf(event);
  return result;
}
Result eventRecord(EventHandle event, StreamHandle stream) {
  Result result = acl().eventRecord(recordOf(event)->handle, handleOf(stream));
  recordOf(event)->recorded |= result == Success;
  return result;
}
Result eventQuery(EventHandle event) {
  if (!recordOf(event)->recorded)
    return Success;
  int status = 0;
  Result result = acl().eventQuery(recordOf(event)->handle, &status);
  return result == Success && status != ascend::EventComplete ? NotReady
                                                              : result;
}
Result eventSynchronize(EventHandle event) {
  return recordOf(event)->recorded
             ? acl().eventSynchronize(recordOf(event)->handle)
             : Success;
}
Result eventElapsed(float *milliseconds, EventHandle start, EventHandle end) {
  return acl().eventElapsed(milliseconds, recordOf(start)->handle,
                            recordOf(end)->handle);
}

Result copyAsync(DevicePointer to, DevicePointer from, size_t bytes,
                 StreamHandle stream) {
  return acl().copyAsync(pointerOf(to), bytes, pointerOf(from), bytes,
                         ascend::CopyDefault, handleOf(stream));
}
/// Lets two devices reach each other's memory, once.
Result connect(int32_t here, int32_t there) {
  static std::mutex mutex;
  static std::set<std::pair<int32_t, int32_t>> connected;
  std::lock_guard<std::mutex> lock(mutex);
  if (!connected.insert(std::minmax(here, there)).second)
    return Success;
  Result result = acl().enablePeer(there, 0);
  if (result == Success)
    result = ascend::setCurrentDevice(there);
  if (result == Success)
    result = acl().enablePeer(here, 0);
  Result back = ascend::setCurrentDevice(here);
  return result == Success ? back : result;
}
Result copyPeerAsync(DevicePointer to, ContextHandle toContext,
                     DevicePointer from, ContextHandle fromContext,
                     size_t bytes, StreamHandle stream) {
  int32_t here = ascend::currentDevice();
  int32_t there =
      numberOf(toContext) == here ? numberOf(fromContext) : numberOf(toContext);
  Result result = connect(here, there);
  return result != Success
             ? result
             : acl().copyAsync(pointerOf(to), bytes, pointerOf(from), bytes,
                               ascend::CopyDeviceToDevice, handleOf(stream));
}
Result copy2DAsync(const Copy2D *copy, StreamHandle stream) {
  Result result = Success;
  for (size_t row = 0; result == Success && row < copy->height; ++row)
    result = copyAsync(copy->dstDevice + row * copy->dstPitch,
                       copy->srcDevice + row * copy->srcPitch,
                       copy->widthInBytes, stream);
  return result;
}
Result setBytesAsync(DevicePointer to, unsigned char value, size_t bytes,
                     StreamHandle stream) {
  return acl().setBytesAsync(pointerOf(to), bytes, value, bytes,
                             handleOf(stream));
}
Result hostFunction(StreamHandle stream, HostFunction function, void *arg) {
  return acl().hostFunction(handleOf(stream), function, arg);
}

// Kernels.cpp loads, finds and launches fragments itself.
Result moduleLoad(ModuleHandle *, const void *) { return NotReady; }
Result moduleUnload(ModuleHandle module) { return unloadFragments(module); }
Result moduleFunction(FunctionHandle *, ModuleHandle, const char *) {
  return NotReady;
}
Result functionSet(FunctionHandle, int, int) { return Success; }
Result launch(FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned,
              unsigned, unsigned, StreamHandle, void **, void **) {
  return NotReady;
}

// A captured step is a model that can be run at once: instantiating keeps it.
thread_local GraphHandle instantiated = nullptr;

Result captureBegin(StreamHandle stream, int) {
  return acl().captureBegin(handleOf(stream), ascend::CaptureThreadLocal);
}
Result captureEnd(StreamHandle stream, GraphHandle *out) {
  return acl().captureEnd(handleOf(stream),
                          reinterpret_cast<ascend::Handle *>(out));
}
Result graphInstantiate(GraphExecHandle *out, GraphHandle graph,
                        unsigned long long) {
  instantiated = graph;
  *out = reinterpret_cast<GraphExecHandle>(graph);
  return Success;
}
Result graphLaunch(GraphExecHandle graph, StreamHandle stream) {
  return acl().graphLaunch(reinterpret_cast<ascend::Handle>(graph),
                           handleOf(stream));
}
Result graphDestroy(GraphHandle graph) {
  return graph == std::exchange(instantiated, nullptr)
             ? Success
             : acl().graphDestroy(reinterpret_cast<ascend::Handle>(graph));
}
Result graphExecDestroy(GraphExecHandle graph) {
  return acl().graphDestroy(reinterpret_cast<ascend::Handle>(graph));
}

} // namespace

hp_status Driver::load(const char *path) {
  hp_status status = acl().load(path);
  if (status != HP_OK)
    return status;
#define HP_ASCEND_ADAPT(NAME, MEMBER, PARAMETERS)                              \
  this->MEMBER = ::hyperparallel::runtime::cuda::MEMBER;
  HP_CUDA_DRIVER_FUNCTIONS(HP_ASCEND_ADAPT)
  if (acl().captureBegin && acl().captureEnd && acl().graphLaunch &&
      acl().graphDestroy) {
    HP_CUDA_GRAPH_FUNCTIONS(HP_ASCEND_ADAPT)
  }
#undef HP_ASCEND_ADAPT
  loaded = true;
  return HP_OK;
}

hp_status Driver::check(Result result, const char *what) const {
  if (result == Success)
    return HP_OK;
  const char *words = acl().message();
  return fail(result == OutOfMemory ? HP_OUT_OF_MEMORY : HP_INTERNAL,
              "%s: %s (ACL error %d)", what, words ? words : "unknown error",
              result);
}

} // namespace hyperparallel::runtime::cuda
