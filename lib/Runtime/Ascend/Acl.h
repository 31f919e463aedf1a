// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Acl.h - The part of Ascend's runtime (ACL) that is used -----------===//
//
// Our own prototypes of libascendcl.so, which is opened when a context is made:
// neither headers nor libraries of a vendor are needed to build. Where the
// headers are at hand (they come with the torch-npu wheel),
// test/Runtime/vendor checks every prototype and number against them.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_ASCEND_ACL_H
#define HYPERPARALLEL_LIB_RUNTIME_ASCEND_ACL_H

#include "lib/Runtime/hp_runtime.h"

#include <cstddef>
#include <cstdint>

namespace hyperparallel::runtime::ascend {

using Status = int;
using Handle = void *; ///< of streams, events, pools, binaries and functions
using HostFunction = void (*)(void *);

constexpr Status Success = 0, OutOfMemory = 207001, BadAlloc = 200000;
constexpr Status InitialisedBefore = 100002;
constexpr int MallocHugeFirst = 0;
constexpr int CopyHostToDevice = 1, CopyDeviceToHost = 2,
              CopyDeviceToDevice = 3, CopyDefault = 4;
constexpr uint32_t EventSync = 1, EventTimeLine = 8;
constexpr uint32_t StreamFastLaunch = 1, StreamFastSync = 2;
constexpr int EventComplete = 1;
constexpr int CaptureThreadLocal = 1; // aclmdlRICaptureMode
constexpr int LocationDevice = 1;
constexpr int PoolReleaseThreshold = 4;

/// aclrtMemPoolProps.
struct PoolProps {
  int allocationType = 0; ///< pinned
  int handleType = 0;     ///< none
  struct {
    uint32_t id = 0;
    int type = LocationDevice;
  } location;
  size_t maxSize = 0;
  unsigned char reserved[32] = {};
};

// X(name in the library, member, result, parameters)
#define HP_ACL_FUNCTIONS(X)                                                    \
  X(aclInit, init, Status, (const char *))                                     \
  X(aclGetRecentErrMsg, message, const char *, ())                             \
  X(aclrtGetDeviceCount, deviceCount, Status, (uint32_t *))                    \
  X(aclrtSetDevice, setDevice, Status, (int32_t))                              \
  X(aclrtGetSocName, socName, const char *, ())                                \
  X(aclrtSynchronizeDevice, synchronizeDevice, Status, ())                     \
  X(aclrtMalloc, alloc, Status, (void **, size_t, int))                        \
  X(aclrtFree, free, Status, (void *))                                         \
  X(aclrtMallocHost, hostAlloc, Status, (void **, size_t))                     \
  X(aclrtFreeHost, hostFree, Status, (void *))                                 \
  X(aclrtMemPoolCreate, poolCreate, Status, (Handle *, const PoolProps *))     \
  X(aclrtMemPoolSetAttr, poolSet, Status, (Handle, int, void *))               \
  X(aclrtMemPoolMallocAsync, allocAsync, Status,                               \
    (void **, size_t, Handle, Handle))                                         \
  X(aclrtMemPoolFreeAsync, freeAsync, Status, (void *, Handle))                \
  X(aclrtCreateStreamWithConfig, streamCreate, Status,                         \
    (Handle *, uint32_t, uint32_t))                                            \
  X(aclrtDestroyStream, streamDestroy, Status, (Handle))                       \
  X(aclrtSynchronizeStream, streamSynchronize, Status, (Handle))               \
  X(aclrtStreamWaitEvent, streamWait, Status, (Handle, Handle))                \
  X(aclrtCreateEventExWithFlag, eventCreate, Status, (Handle *, uint32_t))     \
  X(aclrtDestroyEvent, eventDestroy, Status, (Handle))                         \
  X(aclrtRecordEvent, eventRecord, Status, (Handle, Handle))                   \
  X(aclrtQueryEventStatus, eventQuery, Status, (Handle, int *))                \
  X(aclrtSynchronizeEvent, eventSynchronize, Status, (Handle))                 \
  X(aclrtEventElapsedTime, eventElapsed, Status, (float *, Handle, Handle))    \
  X(aclrtMemcpyAsync, copyAsync, Status,                                       \
    (void *, size_t, const void *, size_t, int, Handle))                       \
  X(aclrtDeviceEnablePeerAccess, enablePeer, Status, (int32_t, uint32_t))      \
  X(aclrtMemsetAsync, setBytesAsync, Status,                                   \
    (void *, size_t, int32_t, size_t, Handle))                                 \
  X(aclrtLaunchHostFunc, hostFunction, Status, (Handle, HostFunction, void *)) \
  X(aclrtBinaryLoadFromFile, binaryLoad, Status,                               \
    (const char *, void *, Handle *))                                          \
  X(aclrtBinaryUnLoad, binaryUnload, Status, (Handle))                         \
  X(aclrtBinaryGetFunction, binaryFunction, Status,                            \
    (Handle, const char *, Handle *))                                          \
  X(aclrtLaunchKernelV2, launch, Status,                                       \
    (Handle, uint32_t, const void *, size_t, void *, Handle))

/// Captured steps: null where the library is older than they are.
#define HP_ACL_GRAPH_FUNCTIONS(X)                                              \
  X(aclmdlRICaptureBegin, captureBegin, Status, (Handle, int))                 \
  X(aclmdlRICaptureEnd, captureEnd, Status, (Handle, Handle *))                \
  X(aclmdlRIExecuteAsync, graphLaunch, Status, (Handle, Handle))               \
  X(aclmdlRIDestroy, graphDestroy, Status, (Handle))

struct Acl {
#define HP_ACL_MEMBER(NAME, MEMBER, RESULT, PARAMETERS)                        \
  RESULT(*MEMBER) PARAMETERS;
  HP_ACL_FUNCTIONS(HP_ACL_MEMBER)
#undef HP_ACL_MEMBER
#define HP_ACL_MEMBER(NAME, MEMBER, RESULT, PARAMETERS)                        \
  RESULT(*MEMBER) PARAMETERS = nullptr;
  HP_ACL_GRAPH_FUNCTIONS(HP_ACL_MEMBER)
#undef HP_ACL_MEMBER

  /// Opens the library once. HP_NOT_FOUND says what is missing and what to do.
  hp_status load(const char *path);

  bool loaded = false;
};

/// The library is one in a process, as its devices are.
Acl &acl();

/// The device that is current on the calling thread; -1 before there is one.
int32_t currentDevice();
Status setCurrentDevice(int32_t number);

} // namespace hyperparallel::runtime::ascend

#endif // HYPERPARALLEL_LIB_RUNTIME_ASCEND_ACL_H
