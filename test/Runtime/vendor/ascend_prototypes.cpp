// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our own prototypes of ACL and HCCL against the vendor's headers, where they
// are at hand (they come with the torch-npu wheel). Only compiled, by a test;
// never a part of the product. Operators (aclnn) have no headers there.
#include "lib/Runtime/Ascend/Acl.h"
#include "lib/Runtime/Ascend/Hccl.h"
#include "test/Runtime/vendor/alike.h"

#include <acl/acl.h>
#include <acl/acl_rt.h>
#include <acl/acl_rt_memory_soma.h>
#include <hccl/hccl.h>

namespace ours = hyperparallel::runtime::ascend;
namespace hccl = hyperparallel::runtime::ascend::hccl;

#define CHECK(NAME, MEMBER, RESULT, PARAMETERS)                                \
  static_assert(Same<decltype(ours::Acl::MEMBER), decltype(&::NAME)>, #NAME);
HP_ACL_FUNCTIONS(CHECK)
HP_ACL_GRAPH_FUNCTIONS(CHECK)
#undef CHECK

static_assert(ours::Success == ACL_SUCCESS);
static_assert(ours::BadAlloc == ACL_ERROR_BAD_ALLOC);
static_assert(ours::InitialisedBefore == ACL_ERROR_REPEAT_INITIALIZE);
static_assert(ours::MallocHugeFirst == ACL_MEM_MALLOC_HUGE_FIRST);
static_assert(ours::CopyDefault == ACL_MEMCPY_DEFAULT);
static_assert(ours::CopyDeviceToDevice == ACL_MEMCPY_DEVICE_TO_DEVICE);
static_assert(ours::CaptureThreadLocal ==
              ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL);
static_assert(ours::EventSync == ACL_EVENT_SYNC);
static_assert(ours::EventTimeLine == ACL_EVENT_TIME_LINE);
static_assert(ours::StreamFastLaunch == ACL_STREAM_FAST_LAUNCH);
static_assert(ours::StreamFastSync == ACL_STREAM_FAST_SYNC);
static_assert(ours::EventComplete == ACL_EVENT_RECORDED_STATUS_COMPLETE);
static_assert(ours::LocationDevice == ACL_MEM_LOCATION_TYPE_DEVICE);
static_assert(ours::PoolReleaseThreshold ==
              ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD);
static_assert(sizeof(ours::PoolProps) == sizeof(aclrtMemPoolProps));
static_assert(offsetof(ours::PoolProps, location.id) ==
              offsetof(aclrtMemPoolProps, location.id));
static_assert(offsetof(ours::PoolProps, location.type) ==
              offsetof(aclrtMemPoolProps, location.type));
static_assert(offsetof(ours::PoolProps, maxSize) ==
              offsetof(aclrtMemPoolProps, maxSize));

#define CHECK(NAME, MEMBER, PARAMETERS)                                        \
  static_assert(Same<int(*) PARAMETERS, decltype(&::NAME)>, #NAME);
namespace hyperparallel::runtime::ascend {
HP_HCCL_FUNCTIONS(CHECK)
}
static_assert(sizeof(hccl::RootInfo) == sizeof(HcclRootInfo));
static_assert(sizeof(hccl::Item) == sizeof(HcclSendRecvItem));
static_assert(offsetof(hccl::Item, peer) ==
              offsetof(HcclSendRecvItem, remoteRank));
static_assert(HCCL_SEND == 0 && HCCL_RECV == 1);
static_assert(hccl::Int8 == HCCL_DATA_TYPE_INT8);
static_assert(hccl::Uint8 == HCCL_DATA_TYPE_UINT8);
static_assert(hccl::Int16 == HCCL_DATA_TYPE_INT16);
static_assert(hccl::Int32 == HCCL_DATA_TYPE_INT32);
static_assert(hccl::Int64 == HCCL_DATA_TYPE_INT64);
static_assert(hccl::Float16 == HCCL_DATA_TYPE_FP16);
static_assert(hccl::Bfloat16 == HCCL_DATA_TYPE_BFP16);
static_assert(hccl::Float32 == HCCL_DATA_TYPE_FP32);
static_assert(hccl::Sum == HCCL_REDUCE_SUM && hccl::Prod == HCCL_REDUCE_PROD);
static_assert(hccl::Max == HCCL_REDUCE_MAX && hccl::Min == HCCL_REDUCE_MIN);
static_assert(HCCL_E_NOT_SUPPORT == 5);
