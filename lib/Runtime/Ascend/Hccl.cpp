// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Hccl.cpp - HCCL under the interface of collectives ----------------===//
//
// The back ends for devices share their collectives (CUDA/CollectiveCalls.cpp),
// which speak to a library by the functions of `Nccl`. Here are HCCL's. Where
// the two differ:
//
//   - An identity is 4108 bytes; what travels is a number in a table of them.
//   - There are no groups of calls. What is queued in one is put off until it
//     ends: messages become one call with a list, and what a member sends to
//     itself a copy. Where one thread has queued for several members, each gets
//     a thread, since joining waits for all of them.
//   - There is no average, and no product of bf16. Flags are numbers with a
//     sign.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Ascend/Hccl.h"
#include "lib/Runtime/Ascend/Acl.h"
#include "lib/Runtime/CUDA/Nccl.h"
#include "lib/Runtime/ElementTypes.h"

#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <memory>
#include <thread>

namespace hyperparallel::runtime::cuda {

namespace {

namespace hccl = ascend::hccl;

struct Library {
#define HP_HCCL_MEMBER(NAME, MEMBER, PARAMETERS) int(*MEMBER) PARAMETERS;
  HP_HCCL_FUNCTIONS(HP_HCCL_MEMBER)
#undef HP_HCCL_MEMBER
} library;

constexpr int NotSupported = 5; // HCCL_E_NOT_SUPPORT

/// What stands behind an nccl::Comm.
struct Member {
  hccl::Comm comm = nullptr;
  uint32_t rank = 0;
};
Member *memberOf(nccl::Comm comm) { return reinterpret_cast<Member *>(comm); }

std::mutex rootMutex;
std::vector<std::unique_ptr<hccl::RootInfo>> roots;

/// What is put off until the group ends that this thread has begun.
struct Call {
  Member *member;
  int32_t device;
  std::function<int()> perform;
  /// Of messages, to which later ones of the same stream are added.
  std::shared_ptr<std::vector<hccl::Item>> items;
  StreamHandle stream;
};
struct Group {
  int depth = 0;
  std::vector<Call> calls;
};
thread_local Group group;

/// Does it now, or when the group ends.
int queue(nccl::Comm comm, std::function<int()> perform) {
  if (group.depth == 0)
    return perform();
  group.calls.push_back({memberOf(comm), ascend::currentDevice(),
                         std::move(perform), nullptr, nullptr});
  return 0;
}

int typeOf(int type) {
  switch (type) {
  case nccl::Int8:
    return hccl::Int8;
  case nccl::Uint8:
    return hccl::Uint8;
  case nccl::Int32:
    return hccl::Int32;
  case nccl::Int64:
    return hccl::Int64;
  case nccl::Float16:
    return hccl::Float16;
  case nccl::Float32:
    return hccl::Float32;
  case nccl::Bfloat16:
    return hccl::Bfloat16;
  default:
    return -1;
  }
}

int reductionOf(int how) {
  return how == nccl::Sum    ? hccl::Sum
         : how == nccl::Prod ? hccl::Prod
         : how == nccl::Max  ? hccl::Max
         : how == nccl::Min  ? hccl::Min
                             : -1;
}

int uniqueId(nccl::UniqueId *out) {
  auto root = std::make_unique<hccl::RootInfo>();
  int result = library.rootInfo(root.get());
  if (result != 0)
    return result;
  std::lock_guard<std::mutex> lock(rootMutex);
  uint64_t number = roots.size();
  roots.push_back(std::move(root));
  std::memset(out, 0, sizeof(*out));
  std::memcpy(out->internal, &number, sizeof(number));
  return 0;
}

int init(nccl::Comm *out, int size, nccl::UniqueId id, int rank) {
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  const hccl::RootInfo *root = nullptr;
  {
    std::lock_guard<std::mutex> lock(rootMutex);
    root = roots[number].get();
  }
  auto member = std::make_unique<Member>();
  member->rank = static_cast<uint32_t>(rank);
  *out = reinterpret_cast<nccl::Comm>(member.get());
  int result = queue(*out, [root, size, member = member.get()] {
    return library.init(static_cast<uint32_t>(size), root, member->rank,
                        &member->comm);
  });
  if (result == 0)
    (void)member.release();
  else
    *out = nullptr;
  return result;
}

int destroy(nccl::Comm comm) {
  hccl::Comm joined = memberOf(comm)->comm;
  int result = joined ? library.destroy(joined) : 0;
  delete memberOf(comm);
  return result;
}

/// Bytes of an element, by nccl's numbers.
size_t bytesOf(int type) {
  static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return bytes[type];
}

/// What only moves, moves as bytes: elements of any type.
int allGather(const void *in, void *out, size_t count, int type,
              nccl::Comm comm, StreamHandle stream) {
  return queue(comm, [=] {
    return library.allGather(const_cast<void *>(in), out, count * bytesOf(type),
                             hccl::Uint8, memberOf(comm)->comm, stream);
  });
}

int allReduce(const void *in, void *out, size_t count, int type, int how,
              nccl::Comm comm, StreamHandle stream) {
  if (typeOf(type) < 0 || reductionOf(how) < 0)
    return NotSupported;
  return queue(comm, [=] {
    return library.allReduce(const_cast<void *>(in), out, count, typeOf(type),
                             reductionOf(how), memberOf(comm)->comm, stream);
  });
}

/// HCCL's is in place: the root's input goes there before.
int broadcast(const void *in, void *out, size_t count, int type, int root,
              nccl::Comm comm, StreamHandle stream) {
  return queue(comm, [=] {
    const Member &self = *memberOf(comm);
    bool isRoot = self.rank == static_cast<uint32_t>(root);
    size_t bytes = count * bytesOf(type);
    int result = 0;
    if (isRoot && in != out)
      result = ascend::acl().copyAsync(out, bytes, in, bytes,
                                       ascend::CopyDefault, stream);
    return result ? result
                  : library.broadcast(out, bytes, hccl::Uint8,
                                      static_cast<uint32_t>(root), self.comm,
                                      stream);
  });
}

int reduceScatter(const void *in, void *out, size_t count, int type, int how,
                  nccl::Comm comm, StreamHandle stream) {
  if (typeOf(type) < 0 || reductionOf(how) < 0)
    return NotSupported;
  return queue(comm, [=] {
    return library.reduceScatter(const_cast<void *>(in), out, count,
                                 typeOf(type), reductionOf(how),
                                 memberOf(comm)->comm, stream);
  });
}

/// Queues a member's messages. Those to oneself are copies, in order.
int exchange(const Member &self, const std::vector<hccl::Item> &items,
             StreamHandle stream) {
  std::vector<hccl::Item> others, sentToSelf;
  for (const hccl::Item &item : items) {
    if (item.peer != self.rank) {
      others.push_back(item);
      continue;
    }
    if (item.kind == 0) {
      sentToSelf.push_back(item);
      continue;
    }
    if (sentToSelf.empty() || sentToSelf.front().count != item.count)
      return NotSupported;
    int result = ascend::acl().copyAsync(item.buffer, item.count,
                                         sentToSelf.front().buffer, item.count,
                                         ascend::CopyDefault, stream);
    sentToSelf.erase(sentToSelf.begin());
    if (result != 0)
      return result;
  }
  if (!sentToSelf.empty())
    return NotSupported;
  return others.empty()
             ? 0
             : library.sendAndReceive(others.data(),
                                      static_cast<uint32_t>(others.size()),
                                      self.comm, stream);
}

/// Messages are of bytes.
int add(const hccl::Item &item, nccl::Comm comm, StreamHandle stream) {
  Member *self = memberOf(comm);
  for (Call &call : group.calls)
    if (call.items && call.member == self && call.stream == stream) {
      call.items->push_back(item);
      return 0;
    }
  auto items = std::make_shared<std::vector<hccl::Item>>(1, item);
  int result = queue(comm, [=] { return exchange(*self, *items, stream); });
  if (group.depth > 0) {
    group.calls.back().items = items;
    group.calls.back().stream = stream;
  }
  return result;
}

int send(const void *buffer, size_t count, int type, int peer, nccl::Comm comm,
         StreamHandle stream) {
  return add({0, const_cast<void *>(buffer), count, typeOf(type),
              static_cast<uint32_t>(peer)},
             comm, stream);
}

int recv(void *buffer, size_t count, int type, int peer, nccl::Comm comm,
         StreamHandle stream) {
  return add({1, buffer, count, typeOf(type), static_cast<uint32_t>(peer)},
             comm, stream);
}

int groupStart() {
  ++group.depth;
  return 0;
}

int performAll(const std::vector<const Call *> &calls) {
  int result = 0;
  for (const Call *call : calls)
    result = result ? result : call->perform();
  return result;
}

int groupEnd() {
  if (--group.depth > 0)
    return 0;
  std::vector<Call> calls;
  calls.swap(group.calls);
  std::vector<std::pair<Member *, std::vector<const Call *>>> members;
  for (const Call &call : calls) {
    size_t at = 0;
    while (at < members.size() && members[at].first != call.member)
      ++at;
    if (at == members.size())
      members.push_back({call.member, {}});
    members[at].second.push_back(&call);
  }
  if (members.size() == 1)
    return performAll(members[0].second);
  std::vector<int> results(members.size(), 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < members.size(); ++i)
    threads.emplace_back([&, i] {
      const std::vector<const Call *> &own = members[i].second;
      results[i] = ascend::setCurrentDevice(own[0]->device);
      if (results[i] == 0)
        results[i] = performAll(own);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int result : results)
    if (result != 0)
      return result;
  return 0;
}

} // namespace

hp_status nccl::findReduction(int64_t dtype, int64_t op, int *type, int *how) {
  static const int types[] = {Int8,    Int8,     -1,      Int32, Int64,
                              Float16, Bfloat16, Float32, -1};
  *type = dtypeBytes(dtype) > 0 ? types[dtype] : -1;
  *how = op == HP_SUM                        ? Sum
         : op == HP_MAX                      ? Max
         : op == HP_MIN                      ? Min
         : op == HP_PROD && dtype != HP_BF16 ? Prod
                                             : -1;
  if (dtype == HP_I1) // bytes of 0 and 1
    *how = op == HP_OR ? Max : op == HP_AND || op == HP_PROD ? Min : -1;
  return *type >= 0 && *how >= 0
             ? HP_OK
             : fail(HP_UNIMPLEMENTED, "HCCL has no %s of %s elements",
                    reductionName(op), dtypeName(dtype));
}

hp_status Nccl::load() {
  std::lock_guard<std::mutex> lock(mutex);
  if (loaded)
    return HP_OK;
  void *opened = openLibrary(path.c_str(), "HP_LIBHCCL", "libhccl.so");
  if (!opened)
    return fail(HP_NOT_FOUND,
                "collectives on 'ascend' need CANN's libhccl.so (%s); install "
                "the CANN toolkit and source its set_env.sh, or name the "
                "library in HP_LIBHCCL",
                dlerror());
#define HP_HCCL_RESOLVE(NAME, MEMBER, PARAMETERS)                              \
  library.MEMBER = reinterpret_cast<int(*) PARAMETERS>(dlsym(opened, #NAME));  \
  if (!library.MEMBER)                                                         \
    return fail(HP_NOT_FOUND,                                                  \
                "libhccl.so has no " #NAME "; install a newer CANN toolkit");
  HP_HCCL_FUNCTIONS(HP_HCCL_RESOLVE)
#undef HP_HCCL_RESOLVE
#define HP_HCCL_ADAPT(NAME, MEMBER, PARAMETERS)                                \
  this->MEMBER = ::hyperparallel::runtime::cuda::MEMBER;
  HP_NCCL_FUNCTIONS(HP_HCCL_ADAPT)
#undef HP_HCCL_ADAPT
  loaded = true;
  return HP_OK;
}

hp_status Nccl::check(int result, const char *what) const {
  if (result == 0)
    return HP_OK;
  const char *words =
      result == NotSupported ? "not supported" : ascend::acl().message();
  return fail(result == NotSupported ? HP_UNIMPLEMENTED : HP_INTERNAL,
              words && *words ? "%s: HCCL error %d: %s" : "%s: HCCL error %d",
              what, result, words);
}

} // namespace hyperparallel::runtime::cuda
