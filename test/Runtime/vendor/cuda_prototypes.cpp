// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our own prototypes of the CUDA driver against the vendor's header, where one
// is at hand. Only compiled, by a test; never a part of the product.
#include "lib/Runtime/CUDA/Driver.h"
#include "test/Runtime/vendor/alike.h"

#include <cuda.h>

namespace ours = hyperparallel::runtime::cuda;

#define CHECK(NAME, MEMBER, PARAMETERS)                                        \
  static_assert(Same<decltype(ours::Driver::MEMBER), decltype(&::NAME)>, #NAME);
HP_CUDA_DRIVER_FUNCTIONS(CHECK)
HP_CUDA_GRAPH_FUNCTIONS(CHECK)

static_assert(sizeof(ours::Copy2D) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(ours::Copy2D, dstPitch) ==
              offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(ours::Copy2D, srcDevice) ==
              offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(ours::Success == CUDA_SUCCESS);
static_assert(ours::OutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(ours::NotReady == CUDA_ERROR_NOT_READY);
static_assert(ours::CapabilityMajor ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(ours::CapabilityMinor ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(ours::StreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(ours::HostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(ours::PoolReleaseThreshold == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
static_assert(ours::FunctionSharedBytes ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(ours::MemoryUnified == CU_MEMORYTYPE_UNIFIED);
static_assert(ours::CaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
