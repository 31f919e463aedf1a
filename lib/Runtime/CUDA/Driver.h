// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Driver.h - The part of the CUDA driver API that is used -----------===//
//
// Our own prototypes of libcuda.so.1, which is opened when a context is made:
// neither headers nor libraries of a vendor are needed to build. Where a cuda.h
// is at hand, test/Runtime/vendor checks every prototype and number against it.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CUDA_DRIVER_H
#define HYPERPARALLEL_LIB_RUNTIME_CUDA_DRIVER_H

#include "lib/Runtime/Status.h"

#include <cstddef>
#include <cstdint>

namespace hyperparallel::runtime::cuda {

using Result = int;
using DeviceNumber = int;
using DevicePointer = unsigned long long;
using ContextHandle = struct CUctx_st *;
using StreamHandle = struct CUstream_st *;
using EventHandle = struct CUevent_st *;
using ModuleHandle = struct CUmod_st *;
using FunctionHandle = struct CUfunc_st *;
using PoolHandle = struct CUmemPoolHandle_st *;
using GraphHandle = struct CUgraph_st *;
using GraphExecHandle = struct CUgraphExec_st *;
using HostFunction = void (*)(void *);

constexpr Result Success = 0, OutOfMemory = 2, NotReady = 600;
constexpr int CapabilityMajor = 75, CapabilityMinor = 76;
constexpr unsigned StreamNonBlocking = 1, HostAllocPortable = 1;
constexpr int PoolReleaseThreshold = 4;
constexpr int FunctionSharedBytes = 8; // of dynamic shared memory, at most
constexpr unsigned MemoryUnified = 4;
constexpr int CaptureThreadLocal = 1; // CUstreamCaptureMode

/// CUDA_MEMCPY2D.
struct Copy2D {
  size_t srcXInBytes, srcY;
  unsigned srcMemoryType;
  const void *srcHost;
  DevicePointer srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  unsigned dstMemoryType;
  void *dstHost;
  DevicePointer dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t widthInBytes, height;
};

/// Rows of `width` bytes from one place to another. A single row has no pitch.
inline Copy2D describeRows(void *dst, int64_t dstPitch, const void *src,
                           int64_t srcPitch, int64_t width, int64_t rows) {
  Copy2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = MemoryUnified;
  copy.srcDevice = reinterpret_cast<DevicePointer>(src);
  copy.dstDevice = reinterpret_cast<DevicePointer>(dst);
  copy.srcPitch = static_cast<size_t>(rows > 1 ? srcPitch : width);
  copy.dstPitch = static_cast<size_t>(rows > 1 ? dstPitch : width);
  copy.widthInBytes = static_cast<size_t>(width);
  copy.height = static_cast<size_t>(rows);
  return copy;
}

// X(name in the library, member, parameters)
#define HP_CUDA_DRIVER_FUNCTIONS(X)                                            \
  X(cuInit, init, (unsigned))                                                  \
  X(cuDriverGetVersion, driverVersion, (int *))                                \
  X(cuGetErrorString, errorString, (Result, const char **))                    \
  X(cuDeviceGetCount, deviceCount, (int *))                                    \
  X(cuDeviceGet, deviceGet, (DeviceNumber *, int))                             \
  X(cuDeviceGetName, deviceName, (char *, int, DeviceNumber))                  \
  X(cuDeviceGetAttribute, deviceAttribute, (int *, int, DeviceNumber))         \
  X(cuDevicePrimaryCtxRetain, contextRetain, (ContextHandle *, DeviceNumber))  \
  X(cuDevicePrimaryCtxRelease_v2, contextRelease, (DeviceNumber))              \
  X(cuCtxSetCurrent, contextSet, (ContextHandle))                              \
  X(cuCtxSynchronize, contextSynchronize, ())                                  \
  X(cuDeviceGetDefaultMemPool, defaultPool, (PoolHandle *, DeviceNumber))      \
  X(cuMemPoolSetAttribute, poolSet, (PoolHandle, int, void *))                 \
  X(cuMemAlloc_v2, alloc, (DevicePointer *, size_t))                           \
  X(cuMemFree_v2, free, (DevicePointer))                                       \
  X(cuMemAllocAsync, allocAsync, (DevicePointer *, size_t, StreamHandle))      \
  X(cuMemFreeAsync, freeAsync, (DevicePointer, StreamHandle))                  \
  X(cuMemHostAlloc, hostAlloc, (void **, size_t, unsigned))                    \
  X(cuMemFreeHost, hostFree, (void *))                                         \
  X(cuStreamCreate, streamCreate, (StreamHandle *, unsigned))                  \
  X(cuStreamDestroy_v2, streamDestroy, (StreamHandle))                         \
  X(cuStreamSynchronize, streamSynchronize, (StreamHandle))                    \
  X(cuStreamWaitEvent, streamWait, (StreamHandle, EventHandle, unsigned))      \
  X(cuEventCreate, eventCreate, (EventHandle *, unsigned))                     \
  X(cuEventDestroy_v2, eventDestroy, (EventHandle))                            \
  X(cuEventRecord, eventRecord, (EventHandle, StreamHandle))                   \
  X(cuEventQuery, eventQuery, (EventHandle))                                   \
  X(cuEventSynchronize, eventSynchronize, (EventHandle))                       \
  X(cuEventElapsedTime, eventElapsed, (float *, EventHandle, EventHandle))     \
  X(cuMemcpyAsync, copyAsync,                                                  \
    (DevicePointer, DevicePointer, size_t, StreamHandle))                      \
  X(cuMemcpyPeerAsync, copyPeerAsync,                                          \
    (DevicePointer, ContextHandle, DevicePointer, ContextHandle, size_t,       \
     StreamHandle))                                                            \
  X(cuMemcpy2DAsync_v2, copy2DAsync, (const Copy2D *, StreamHandle))           \
  X(cuMemsetD8Async, setBytesAsync,                                            \
    (DevicePointer, unsigned char, size_t, StreamHandle))                      \
  X(cuLaunchHostFunc, hostFunction, (StreamHandle, HostFunction, void *))      \
  X(cuModuleLoadData, moduleLoad, (ModuleHandle *, const void *))              \
  X(cuModuleUnload, moduleUnload, (ModuleHandle))                              \
  X(cuModuleGetFunction, moduleFunction,                                       \
    (FunctionHandle *, ModuleHandle, const char *))                            \
  X(cuFuncSetAttribute, functionSet, (FunctionHandle, int, int))               \
  X(cuLaunchKernel, launch,                                                    \
    (FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned,         \
     unsigned, unsigned, StreamHandle, void **, void **))

/// Captured steps (StepGraphs.h); null where a vendor has none.
#define HP_CUDA_GRAPH_FUNCTIONS(X)                                             \
  X(cuStreamBeginCapture_v2, captureBegin, (StreamHandle, int))                \
  X(cuStreamEndCapture, captureEnd, (StreamHandle, GraphHandle *))             \
  X(cuGraphInstantiateWithFlags, graphInstantiate,                             \
    (GraphExecHandle *, GraphHandle, unsigned long long))                      \
  X(cuGraphLaunch, graphLaunch, (GraphExecHandle, StreamHandle))               \
  X(cuGraphDestroy, graphDestroy, (GraphHandle))                               \
  X(cuGraphExecDestroy, graphExecDestroy, (GraphExecHandle))

struct Driver {
#define HP_CUDA_MEMBER(NAME, MEMBER, PARAMETERS) Result(*MEMBER) PARAMETERS;
  HP_CUDA_DRIVER_FUNCTIONS(HP_CUDA_MEMBER)
#undef HP_CUDA_MEMBER
#define HP_CUDA_MEMBER(NAME, MEMBER, PARAMETERS)                               \
  Result(*MEMBER) PARAMETERS = nullptr;
  HP_CUDA_GRAPH_FUNCTIONS(HP_CUDA_MEMBER)
#undef HP_CUDA_MEMBER

  /// Opens the library once. HP_NOT_FOUND says what is missing and what to do.
  hp_status load(const char *path);
  /// HP_OK, or a status with the driver's words; `what` was being done.
  hp_status check(Result result, const char *what) const;

  bool loaded = false;
};

/// Opens a vendor's library: $variable, else `name`.
void *openLibrary(const char *option, const char *variable, const char *name);

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_DRIVER_H
