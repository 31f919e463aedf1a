// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeNccl.cpp - A fake NCCL (a test double) ------------------------===//
//
// NOT NVIDIA's library: libhp_fake_nccl.so answers the functions that the back
// end uses, on the CPU, for GPUs of the fake driver (FakeCuda.h) that are
// driven by a thread each. A collective waits in its call until all members
// have made theirs, compares what they ask for, and gives up after 20 seconds.
// Reductions are in rank order, in f32 for f16 and bf16.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/HalfFloat.h"
#include "lib/Runtime/CUDA/Nccl.h"
#include "test/Runtime/fakes/FakeCuda.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace nccl = hyperparallel::runtime::cuda::nccl;
using hyperparallel::runtime::BFloat16;
using hyperparallel::runtime::Float16;

namespace {

constexpr int Success = 0, InvalidUsage = 5, InternalError = 3;

/// What a member asks for in a collective.
struct Request {
  std::string what;
  const void *in = nullptr;
  size_t count = 0;
};

struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  size_t size = 0;
  size_t arrived = 0, left = 0, joined = 0;
  uint64_t round = 0, ended = 0;
  std::vector<Request> requests;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> mail;
};

struct Comm {
  std::shared_ptr<Clique> clique;
  int rank;
};

struct Message {
  bool isSend;
  const void *from;
  void *to;
  size_t bytes;
  int peer;
  Comm *comm;
  void *stream;
};

std::mutex cliquesMutex;
std::map<std::string, std::shared_ptr<Clique>> cliques;
thread_local int groupDepth = 0;
thread_local std::vector<Message> messages;

int refuse(const std::string &what) {
  hp_fake_cuda_refuse(("NCCL: " + what).c_str());
  return InvalidUsage;
}

size_t sizeOf(int type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

double load(const void *base, size_t i, int type) {
  switch (type) {
  case nccl::Int8:
    return static_cast<const int8_t *>(base)[i];
  case nccl::Uint8:
    return static_cast<const uint8_t *>(base)[i];
  case nccl::Int32:
    return static_cast<const int32_t *>(base)[i];
  case nccl::Float16:
    return Float16::toFloat(static_cast<const Float16 *>(base)[i]);
  case nccl::Float32:
    return static_cast<const float *>(base)[i];
  case nccl::Float64:
    return static_cast<const double *>(base)[i];
  default:
    return BFloat16::toFloat(static_cast<const BFloat16 *>(base)[i]);
  }
}

void store(void *base, size_t i, int type, double value) {
  switch (type) {
  case nccl::Int8:
    static_cast<int8_t *>(base)[i] = static_cast<int8_t>(value);
    break;
  case nccl::Uint8:
    static_cast<uint8_t *>(base)[i] = static_cast<uint8_t>(value);
    break;
  case nccl::Int32:
    static_cast<int32_t *>(base)[i] =
        static_cast<int32_t>(static_cast<int64_t>(value));
    break;
  case nccl::Float16:
    static_cast<Float16 *>(base)[i] =
        Float16::fromFloat(static_cast<float>(value));
    break;
  case nccl::Float32:
    static_cast<float *>(base)[i] = static_cast<float>(value);
    break;
  case nccl::Float64:
    static_cast<double *>(base)[i] = value;
    break;
  default:
    static_cast<BFloat16 *>(base)[i] =
        BFloat16::fromFloat(static_cast<float>(value));
  }
}

template <typename T>
T combine(T a, T b, int op) {
  switch (op) {
  case nccl::Prod:
    return a * b;
  case nccl::Max:
    return std::max(a, b);
  case nccl::Min:
    return std::min(a, b);
  default:
    return a + b;
  }
}

/// out[i] = all members' in[offset + i].
void reduce(const std::vector<Request> &requests, size_t offset, size_t count,
            int type, int op, void *out) {
  for (size_t i = 0; i < count; ++i) {
    if (type == nccl::Int64) {
      auto at = [&](size_t rank) {
        return static_cast<const int64_t *>(requests[rank].in)[offset + i];
      };
      int64_t value = at(0);
      for (size_t rank = 1; rank < requests.size(); ++rank)
        value = combine(value, at(rank), op);
      static_cast<int64_t *>(out)[i] = value;
      continue;
    }
    double value = load(requests[0].in, offset + i, type);
    for (size_t rank = 1; rank < requests.size(); ++rank) {
      value = combine(value, load(requests[rank].in, offset + i, type), op);
      if (type == nccl::Float32)
        value = static_cast<float>(value);
    }
    if (op == nccl::Avg)
      value /= static_cast<double>(requests.size());
    store(out, i, type, value);
  }
}

/// Meets the other members; `work` runs while all are there. In-place results
/// are made in a buffer of its own first, since others still read the input.
template <typename Work>
int together(Comm *comm, const Request &request, size_t inBytes,
             size_t outBytes, void *out, void *stream, Work work) {
  Clique &clique = *comm->clique;
  int fault = hp_fake_cuda_begin(stream, request.what.c_str());
  if (!fault)
    fault = hp_fake_cuda_access(stream, reinterpret_cast<uint64_t>(request.in),
                                inBytes, 0);
  if (!fault)
    fault = hp_fake_cuda_access(stream, reinterpret_cast<uint64_t>(out),
                                outBytes, 1);
  if (fault)
    return InternalError;
  std::unique_lock<std::mutex> lock(clique.mutex);
  auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  uint64_t round = clique.round;
  clique.requests[comm->rank] = request;
  if (++clique.arrived == clique.size) {
    ++clique.round;
    clique.changed.notify_all();
  } else if (!clique.changed.wait_until(
                 lock, patience, [&] { return clique.round != round; })) {
    return refuse("rank " + std::to_string(comm->rank) + " waits in " +
                  request.what + " for members that never come");
  }
  for (const Request &other : clique.requests)
    if (other.what != request.what || other.count != request.count)
      fault = refuse(
          "members of a group ask for different collectives: " + request.what +
          " of " + std::to_string(request.count) + " and " + other.what +
          " of " + std::to_string(other.count));
  std::vector<char> made(outBytes);
  if (!fault)
    work(clique.requests, made.data());
  if (++clique.left == clique.size)
    clique.changed.notify_all();
  else
    clique.changed.wait_until(lock, patience,
                              [&] { return clique.left == clique.size; });
  // All have read: results may go where inputs were.
  std::memcpy(out, made.data(), outBytes);
  uint64_t ended = clique.ended;
  if (++clique.joined == clique.size) {
    clique.arrived = clique.left = clique.joined = 0;
    ++clique.ended;
    clique.changed.notify_all();
  } else {
    clique.changed.wait_until(lock, patience,
                              [&] { return clique.ended != ended; });
  }
  return fault ? InvalidUsage : Success;
}

int runMessages(std::vector<Message> &queued) {
  for (const Message &message : queued) {
    if (!message.isSend)
      continue;
    int fault = hp_fake_cuda_begin(message.stream, "ncclSend");
    if (!fault)
      fault = hp_fake_cuda_access(message.stream,
                                  reinterpret_cast<uint64_t>(message.from),
                                  message.bytes, 0);
    if (fault)
      return InternalError;
    Clique &clique = *message.comm->clique;
    std::lock_guard<std::mutex> lock(clique.mutex);
    const char *from = static_cast<const char *>(message.from);
    clique.mail[{message.comm->rank, message.peer}].emplace_back(
        from, from + message.bytes);
    clique.changed.notify_all();
  }
  for (const Message &message : queued) {
    if (message.isSend)
      continue;
    int fault = hp_fake_cuda_begin(message.stream, "ncclRecv");
    if (!fault)
      fault = hp_fake_cuda_access(message.stream,
                                  reinterpret_cast<uint64_t>(message.to),
                                  message.bytes, 1);
    if (fault)
      return InternalError;
    Clique &clique = *message.comm->clique;
    std::unique_lock<std::mutex> lock(clique.mutex);
    auto &box = clique.mail[{message.peer, message.comm->rank}];
    if (!clique.changed.wait_for(lock, std::chrono::seconds(20),
                                 [&] { return !box.empty(); }))
      return refuse("a receive that nobody sends for");
    if (box.front().size() != message.bytes)
      return refuse("a receive of " + std::to_string(message.bytes) +
                    " bytes meets a send of " +
                    std::to_string(box.front().size()));
    std::memcpy(message.to, box.front().data(), message.bytes);
    box.pop_front();
  }
  return Success;
}

int addMessage(const Message &message) {
  messages.push_back(message);
  if (groupDepth > 0)
    return Success;
  std::vector<Message> queued;
  queued.swap(messages);
  return runMessages(queued);
}

} // namespace

FAKE int ncclGetUniqueId(nccl::UniqueId *out) {
  static std::mutex mutex;
  static int made = 0;
  std::lock_guard<std::mutex> lock(mutex);
  std::memset(out, 0, sizeof(*out));
  std::snprintf(out->internal, sizeof(out->internal), "fake clique %d", made++);
  return Success;
}

FAKE int ncclCommInitRank(Comm **out, int size, nccl::UniqueId id, int rank) {
  std::shared_ptr<Clique> clique;
  {
    std::lock_guard<std::mutex> lock(cliquesMutex);
    std::shared_ptr<Clique> &known = cliques[id.internal];
    if (!known) {
      known = std::make_shared<Clique>();
      known->size = static_cast<size_t>(size);
      known->requests.resize(known->size);
    }
    clique = known;
  }
  if (static_cast<size_t>(size) != clique->size || rank < 0 || rank >= size)
    return refuse("members disagree about the size of their group");
  *out = new Comm{clique, rank};
  return Success;
}

FAKE int ncclCommDestroy(Comm *comm) {
  delete comm;
  return Success;
}

FAKE int ncclAllGather(const void *in, void *out, size_t count, int type,
                       Comm *comm, void *stream) {
  size_t bytes = count * sizeOf(type), size = comm->clique->size;
  return together(comm, {"ncclAllGather", in, bytes}, bytes, bytes * size, out,
                  stream, [&](const std::vector<Request> &all, char *made) {
                    for (size_t rank = 0; rank < size; ++rank)
                      std::memcpy(made + rank * bytes, all[rank].in, bytes);
                  });
}

FAKE int ncclAllReduce(const void *in, void *out, size_t count, int type,
                       int op, Comm *comm, void *stream) {
  size_t bytes = count * sizeOf(type);
  return together(comm, {"ncclAllReduce", in, bytes}, bytes, bytes, out, stream,
                  [&](const std::vector<Request> &all, char *made) {
                    reduce(all, 0, count, type, op, made);
                  });
}

FAKE int ncclReduceScatter(const void *in, void *out, size_t count, int type,
                           int op, Comm *comm, void *stream) {
  size_t bytes = count * sizeOf(type), size = comm->clique->size;
  return together(comm, {"ncclReduceScatter", in, bytes}, bytes * size, bytes,
                  out, stream,
                  [&](const std::vector<Request> &all, char *made) {
                    reduce(all, static_cast<size_t>(comm->rank) * count, count,
                           type, op, made);
                  });
}

FAKE int ncclSend(const void *buffer, size_t count, int type, int peer,
                  Comm *comm, void *stream) {
  return addMessage(
      {true, buffer, nullptr, count * sizeOf(type), peer, comm, stream});
}

FAKE int ncclRecv(void *buffer, size_t count, int type, int peer, Comm *comm,
                  void *stream) {
  return addMessage(
      {false, nullptr, buffer, count * sizeOf(type), peer, comm, stream});
}

FAKE int ncclGroupStart() {
  ++groupDepth;
  return Success;
}

FAKE int ncclGroupEnd() {
  if (groupDepth == 0)
    return refuse("ncclGroupEnd without ncclGroupStart");
  if (--groupDepth > 0)
    return Success;
  std::vector<Message> queued;
  queued.swap(messages);
  return runMessages(queued);
}
