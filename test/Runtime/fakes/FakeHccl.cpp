// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeHccl.cpp - A fake HCCL (a test double) ------------------------===//
//
// NOT Huawei's library: libhp_fake_hccl.so answers the functions of libhccl.so
// that the back end uses. Groups and reductions are those of the other fake of
// collectives (FakeNccl.cpp), under HCCL's names, numbers and rules: there is
// no f64, no average, no product of bf16, and nobody sends to itself.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Ascend/Hccl.h"
#include "lib/Runtime/CUDA/Nccl.h"
#include "test/Runtime/fakes/FakeCuda.h"

#include <cstring>
#include <string>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace hccl = hyperparallel::runtime::ascend::hccl;
namespace nccl = hyperparallel::runtime::cuda::nccl;

// Of the other fake.
extern "C" {
int ncclGetUniqueId(nccl::UniqueId *);
int ncclCommInitRank(void **, int, nccl::UniqueId, int);
int ncclCommDestroy(void *);
int ncclAllGather(const void *, void *, size_t, int, void *, void *);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
int ncclReduceScatter(const void *, void *, size_t, int, int, void *, void *);
int ncclBroadcast(const void *, void *, size_t, int, int, void *, void *);
int ncclSend(const void *, size_t, int, int, void *, void *);
int ncclRecv(void *, size_t, int, int, void *, void *);
int ncclGroupStart();
int ncclGroupEnd();
}

namespace {

struct Comm {
  void *inner;
  uint32_t rank, size;
};
Comm &commOf(hccl::Comm comm) { return *static_cast<Comm *>(comm); }

constexpr int Parameter = 1, Internal = 4;

int refuse(const std::string &what) {
  hp_fake_cuda_refuse(("HCCL: " + what).c_str());
  return Parameter;
}

int typeOf(int type) {
  switch (type) {
  case hccl::Int8:
    return nccl::Int8;
  case hccl::Uint8:
    return nccl::Uint8;
  case hccl::Int32:
    return nccl::Int32;
  case hccl::Int64:
    return nccl::Int64;
  case hccl::Float16:
    return nccl::Float16;
  case hccl::Float32:
    return nccl::Float32;
  case hccl::Bfloat16:
    return nccl::Bfloat16;
  default:
    return -1;
  }
}
int reductionOf(int how) {
  static const int reductions[] = {nccl::Sum, nccl::Prod, nccl::Max, nccl::Min};
  return how >= hccl::Sum && how <= hccl::Min ? reductions[how] : -1;
}
/// Unsigned bytes only move, and of bf16 there is no product.
bool reduces(int type, int how) {
  return typeOf(type) >= 0 && reductionOf(how) >= 0 && type != hccl::Uint8 &&
         !(type == hccl::Bfloat16 && how == hccl::Prod);
}
int convert(int result) { return result == 0 ? 0 : Internal; }

} // namespace

FAKE int HcclGetRootInfo(hccl::RootInfo *out) {
  nccl::UniqueId id;
  int result = ncclGetUniqueId(&id);
  std::memset(out, 0x11, sizeof(*out));
  std::memcpy(out->internal, &id, sizeof(id));
  return convert(result);
}
FAKE int HcclCommInitRootInfo(uint32_t size, const hccl::RootInfo *root,
                              uint32_t rank, hccl::Comm *out) {
  nccl::UniqueId id;
  std::memcpy(&id, root->internal, sizeof(id));
  void *inner = nullptr;
  int result = ncclCommInitRank(&inner, static_cast<int>(size), id,
                                static_cast<int>(rank));
  if (result == 0)
    *out = new Comm{inner, rank, size};
  return convert(result);
}
FAKE int HcclCommDestroy(hccl::Comm comm) {
  int result = ncclCommDestroy(commOf(comm).inner);
  delete &commOf(comm);
  return convert(result);
}
FAKE int HcclAllGather(void *in, void *out, uint64_t count, int type,
                       hccl::Comm comm, hccl::Stream stream) {
  return typeOf(type) < 0 ? refuse("no such element type")
                          : convert(ncclAllGather(in, out, count, typeOf(type),
                                                  commOf(comm).inner, stream));
}
FAKE int HcclAllReduce(void *in, void *out, uint64_t count, int type, int how,
                       hccl::Comm comm, hccl::Stream stream) {
  return !reduces(type, how)
             ? refuse("no such element type or reduction")
             : convert(ncclAllReduce(in, out, count, typeOf(type),
                                     reductionOf(how), commOf(comm).inner,
                                     stream));
}
FAKE int HcclBroadcast(void *buffer, uint64_t count, int type, uint32_t root,
                       hccl::Comm comm, hccl::Stream stream) {
  return typeOf(type) < 0 || root >= commOf(comm).size
             ? refuse("no such element type or root")
             : convert(ncclBroadcast(buffer, buffer, count, typeOf(type),
                                     static_cast<int>(root), commOf(comm).inner,
                                     stream));
}
FAKE int HcclReduceScatter(void *in, void *out, uint64_t count, int type,
                           int how, hccl::Comm comm, hccl::Stream stream) {
  return !reduces(type, how)
             ? refuse("no such element type or reduction")
             : convert(ncclReduceScatter(in, out, count, typeOf(type),
                                         reductionOf(how), commOf(comm).inner,
                                         stream));
}
FAKE int HcclBatchSendRecv(hccl::Item *items, uint32_t count, hccl::Comm comm,
                           hccl::Stream stream) {
  const Comm &self = commOf(comm);
  int result = ncclGroupStart();
  for (uint32_t i = 0; result == 0 && i < count; ++i) {
    const hccl::Item &item = items[i];
    if (item.peer >= self.size || item.peer == self.rank ||
        typeOf(item.type) < 0)
      result = refuse("a message to " + std::to_string(item.peer) + " from " +
                      std::to_string(self.rank) + " of " +
                      std::to_string(self.size));
    else
      result = item.kind == 0
                   ? ncclSend(item.buffer, item.count, typeOf(item.type),
                              static_cast<int>(item.peer), self.inner, stream)
                   : ncclRecv(item.buffer, item.count, typeOf(item.type),
                              static_cast<int>(item.peer), self.inner, stream);
  }
  int ended = ncclGroupEnd();
  return convert(result ? result : ended);
}
