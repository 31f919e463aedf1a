// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Nccl.h - The part of NCCL that is used, and groups of devices -----===//
//
// Our own prototypes of libnccl.so.2, opened at the first collective.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CUDA_NCCL_H
#define HYPERPARALLEL_LIB_RUNTIME_CUDA_NCCL_H

#include "lib/Runtime/CUDA/Driver.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace hyperparallel::runtime::cuda {

namespace nccl {
using Comm = struct ncclComm *;
/// ncclUniqueId, which is passed by value.
struct UniqueId {
  char internal[128];
};
// ncclDataType_t.
constexpr int Int8 = 0, Uint8 = 1, Int32 = 2, Int64 = 4, Float16 = 6,
              Float32 = 7, Float64 = 8, Bfloat16 = 9;
// ncclRedOp_t.
constexpr int Sum = 0, Prod = 1, Max = 2, Min = 3, Avg = 4;

/// The library's words for a reduction, or HP_UNIMPLEMENTED.
hp_status findReduction(int64_t dtype, int64_t op, int *type, int *how);
} // namespace nccl

#define HP_NCCL_FUNCTIONS(X)                                                   \
  X(ncclGetUniqueId, uniqueId, (nccl::UniqueId *))                             \
  X(ncclCommInitRank, init, (nccl::Comm *, int, nccl::UniqueId, int))          \
  X(ncclCommDestroy, destroy, (nccl::Comm))                                    \
  X(ncclAllGather, allGather,                                                  \
    (const void *, void *, size_t, int, nccl::Comm, StreamHandle))             \
  X(ncclAllReduce, allReduce,                                                  \
    (const void *, void *, size_t, int, int, nccl::Comm, StreamHandle))        \
  X(ncclBroadcast, broadcast,                                                  \
    (const void *, void *, size_t, int, int, nccl::Comm, StreamHandle))        \
  X(ncclReduceScatter, reduceScatter,                                          \
    (const void *, void *, size_t, int, int, nccl::Comm, StreamHandle))        \
  X(ncclSend, send,                                                            \
    (const void *, size_t, int, int, nccl::Comm, StreamHandle))                \
  X(ncclRecv, recv, (void *, size_t, int, int, nccl::Comm, StreamHandle))      \
  X(ncclGroupStart, groupStart, ())                                            \
  X(ncclGroupEnd, groupEnd, ())

struct Nccl {
#define HP_NCCL_MEMBER(NAME, MEMBER, PARAMETERS) int(*MEMBER) PARAMETERS;
  HP_NCCL_FUNCTIONS(HP_NCCL_MEMBER)
#undef HP_NCCL_MEMBER

  std::string path; ///< what the option names
  hp_status load();
  hp_status check(int result, const char *what) const;

  /// The id under which the `size` members of a group meet: whoever asks first
  /// makes it, and it is forgotten when all have it.
  hp_status meet(const std::string &key, int64_t size, nccl::UniqueId *out);

private:
  struct Meeting {
    nccl::UniqueId id;
    int64_t absent;
  };
  std::mutex mutex;
  bool loaded = false;
  /// ncclGetLastError, which old versions lack.
  const char *(*lastError)(nccl::Comm) = nullptr;
  std::map<std::string, Meeting> meetings;
};

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_NCCL_H
