// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Hccl.h - The part of HCCL that is used ----------------------------===//
//
// Our own prototypes of libhccl.so, opened at the first collective.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_ASCEND_HCCL_H
#define HYPERPARALLEL_LIB_RUNTIME_ASCEND_HCCL_H

#include <cstdint>

namespace hyperparallel::runtime::ascend::hccl {

using Comm = void *;
using Stream = void *;
/// HcclRootInfo.
struct RootInfo {
  char internal[4108];
};
/// HcclSendRecvItem.
struct Item {
  int kind; ///< 0 sends, 1 receives
  void *buffer;
  uint64_t count;
  int type;
  uint32_t peer;
};
// HcclDataType.
constexpr int Int8 = 0, Int16 = 1, Int32 = 2, Float16 = 3, Float32 = 4,
              Int64 = 5, Uint8 = 7, Bfloat16 = 11;
// HcclReduceOp.
constexpr int Sum = 0, Prod = 1, Max = 2, Min = 3;

#define HP_HCCL_FUNCTIONS(X)                                                   \
  X(HcclGetRootInfo, rootInfo, (hccl::RootInfo *))                             \
  X(HcclCommInitRootInfo, init,                                                \
    (uint32_t, const hccl::RootInfo *, uint32_t, hccl::Comm *))                \
  X(HcclCommDestroy, destroy, (hccl::Comm))                                    \
  X(HcclAllGather, allGather,                                                  \
    (void *, void *, uint64_t, int, hccl::Comm, hccl::Stream))                 \
  X(HcclAllReduce, allReduce,                                                  \
    (void *, void *, uint64_t, int, int, hccl::Comm, hccl::Stream))            \
  X(HcclBroadcast, broadcast,                                                  \
    (void *, uint64_t, int, uint32_t, hccl::Comm, hccl::Stream))               \
  X(HcclReduceScatter, reduceScatter,                                          \
    (void *, void *, uint64_t, int, int, hccl::Comm, hccl::Stream))            \
  X(HcclBatchSendRecv, sendAndReceive,                                         \
    (hccl::Item *, uint32_t, hccl::Comm, hccl::Stream))

} // namespace hyperparallel::runtime::ascend::hccl

#endif // HYPERPARALLEL_LIB_RUNTIME_ASCEND_HCCL_H
