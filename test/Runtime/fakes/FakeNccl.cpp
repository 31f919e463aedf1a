// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeNccl.cpp - A fake NCCL (a test double) ------------------------===//
//
// NOT NVIDIA's library: libhp_fake_nccl.so answers the functions that the back
// end uses, on the CPU, for GPUs of the fake driver (FakeCuda.h) that are
// driven by a thread each, or by one in a group. A collective waits in its call
// until all members have made theirs, compares what they ask for, and gives up
// after HP_FAKE_NCCL_SECONDS (20). Reductions are in rank order, in f32 for f16
// and bf16.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/HalfFloat.h"
#include "lib/Runtime/CUDA/Nccl.h"
#include "test/Runtime/fakes/FakeCuda.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
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

/// One collective of all members.
struct Round {
  std::vector<Request> requests;
  size_t arrived = 0, read = 0, left = 0;
};

struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  size_t size = 0, joined = 0;
  bool isBroken = false; ///< a member failed: the others need not wait
  std::map<uint64_t, Round> rounds;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> mail;
};

struct Comm {
  std::shared_ptr<Clique> clique;
  int rank;
  int device; ///< that was current when it was made
  uint64_t queued = 0;
};

/// Library calls are on the GPU of their communicator, whatever is current.
class OnDevice {
public:
  explicit OnDevice(const Comm &comm)
      : before(hp_fake_cuda_current(comm.device)) {}
  ~OnDevice() { hp_fake_cuda_current(before); }

private:
  int before;
};

using Work = std::function<void(const std::vector<Request> &, char *)>;

/// One member's part in a collective, from its call until it is done.
struct Part {
  Comm *comm;
  Request request;
  size_t inBytes;
  void *out;
  void *stream;
  Work work;
  uint64_t round = 0;
  std::vector<char> made;
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
thread_local std::vector<Part> parts;
thread_local std::vector<Comm *> joining;

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

/// How long a member waits for others.
std::chrono::seconds patience() {
  const char *text = std::getenv("HP_FAKE_NCCL_SECONDS");
  return std::chrono::seconds(text ? std::atoi(text) : 20);
}

/// Waits until all members have done something; gives up in the end.
template <typename Done>
bool await(Clique &clique, std::unique_lock<std::mutex> &lock, Done done) {
  clique.changed.notify_all();
  return clique.changed.wait_for(lock, patience(), [&] {
    return done() || clique.isBroken;
  }) && done();
}

int breakUp(Clique &clique, int fault) {
  {
    std::lock_guard<std::mutex> lock(clique.mutex);
    clique.isBroken = true;
  }
  clique.changed.notify_all();
  return fault;
}

int arrive(Part &part) {
  OnDevice on(*part.comm);
  int fault = hp_fake_cuda_begin(part.stream, part.request.what.c_str());
  if (!fault)
    fault = hp_fake_cuda_access(part.stream,
                                reinterpret_cast<uint64_t>(part.request.in),
                                part.inBytes, 0);
  if (!fault)
    fault = hp_fake_cuda_access(
        part.stream, reinterpret_cast<uint64_t>(part.out), part.made.size(), 1);
  Clique &clique = *part.comm->clique;
  if (fault)
    return breakUp(clique, InternalError);
  std::lock_guard<std::mutex> lock(clique.mutex);
  Round &round = clique.rounds[part.round];
  round.requests.resize(clique.size);
  round.requests[part.comm->rank] = part.request;
  ++round.arrived;
  clique.changed.notify_all();
  return Success;
}

/// Makes the result in a buffer of its own: others may still read what it goes
/// over.
int compute(Part &part) {
  Clique &clique = *part.comm->clique;
  std::unique_lock<std::mutex> lock(clique.mutex);
  Round &round = clique.rounds[part.round];
  if (!await(clique, lock, [&] { return round.arrived == clique.size; }))
    return refuse("rank " + std::to_string(part.comm->rank) + " waits in " +
                  part.request.what + " for members that never come");
  for (const Request &other : round.requests)
    if (other.what != part.request.what || other.count != part.request.count) {
      lock.unlock();
      return breakUp(
          clique, refuse("members of a group ask for different collectives: " +
                         part.request.what + " of " +
                         std::to_string(part.request.count) + " and " +
                         other.what + " of " + std::to_string(other.count)));
    }
  part.work(round.requests, part.made.data());
  ++round.read;
  clique.changed.notify_all();
  return Success;
}

int finish(Part &part) {
  Clique &clique = *part.comm->clique;
  std::unique_lock<std::mutex> lock(clique.mutex);
  Round &round = clique.rounds[part.round];
  if (!await(clique, lock, [&] { return round.read == clique.size; }))
    return InternalError;
  std::memcpy(part.out, part.made.data(), part.made.size());
  if (++round.left == clique.size)
    clique.rounds.erase(part.round);
  return Success;
}

/// All members' parts that this thread has queued, step by step: so one thread
/// may drive several members in a group.
int runParts(std::vector<Part> &queued) {
  int fault = Success;
  for (auto step : {arrive, compute, finish})
    for (Part &part : queued)
      if (!fault)
        fault = step(part);
  return fault;
}

/// Does it, or keeps it for the graph that its stream is captured into.
template <typename Item>
int doNowOrLater(std::vector<Item> queued, int (*run)(std::vector<Item> &)) {
  std::function<int(void *)> work = [=](void *stream) {
    std::vector<Item> again = queued;
    for (Item &item : again)
      item.stream = stream;
    return run(again);
  };
  if (queued.empty() || hp_fake_cuda_defer(queued.front().stream, &work))
    return Success;
  return run(queued);
}

int numberAndRun(std::vector<Part> &queued) {
  for (Part &part : queued)
    part.round = part.comm->queued++;
  return runParts(queued);
}

int addPart(Part part) {
  parts.push_back(std::move(part));
  if (groupDepth > 0)
    return Success;
  std::vector<Part> queued;
  queued.swap(parts);
  return doNowOrLater(std::move(queued), numberAndRun);
}

/// Waits until all members of the groups have joined, as NCCL does.
int finishJoining(const std::vector<Comm *> &comms) {
  for (Comm *comm : comms) {
    Clique &clique = *comm->clique;
    std::unique_lock<std::mutex> lock(clique.mutex);
    if (!await(clique, lock, [&] { return clique.joined == clique.size; }))
      return refuse("rank " + std::to_string(comm->rank) +
                    " joins a group whose members never come; one thread joins "
                    "for several members between ncclGroupStart and "
                    "ncclGroupEnd");
  }
  return Success;
}

int runMessages(std::vector<Message> &queued) {
  for (const Message &message : queued) {
    if (!message.isSend)
      continue;
    OnDevice on(*message.comm);
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
    OnDevice on(*message.comm);
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
    if (!clique.changed.wait_for(lock, patience(),
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
  return doNowOrLater(std::move(queued), runMessages);
}

} // namespace

extern "C" int cuGetErrorString(int result, const char **text);

FAKE const char *ncclGetLastError(Comm *) {
  constexpr int refused = 999;
  const char *text = nullptr;
  cuGetErrorString(refused, &text);
  return text;
}

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
    }
    clique = known;
  }
  if (static_cast<size_t>(size) != clique->size || rank < 0 || rank >= size)
    return refuse("members disagree about the size of their group");
  int device = hp_fake_cuda_current(-1);
  hp_fake_cuda_current(device);
  *out = new Comm{clique, rank, device};
  {
    std::lock_guard<std::mutex> lock(clique->mutex);
    ++clique->joined;
  }
  clique->changed.notify_all();
  if (groupDepth > 0) {
    joining.push_back(*out);
    return Success;
  }
  return finishJoining({*out});
}

FAKE int ncclCommDestroy(Comm *comm) {
  delete comm;
  return Success;
}

FAKE int ncclAllGather(const void *in, void *out, size_t count, int type,
                       Comm *comm, void *stream) {
  size_t bytes = count * sizeOf(type), size = comm->clique->size;
  return addPart({comm,
                  {"ncclAllGather", in, bytes},
                  bytes,
                  out,
                  stream,
                  [=](const std::vector<Request> &all, char *made) {
                    for (size_t rank = 0; rank < size; ++rank)
                      std::memcpy(made + rank * bytes, all[rank].in, bytes);
                  },
                  0,
                  std::vector<char>(bytes * size)});
}

FAKE int ncclAllReduce(const void *in, void *out, size_t count, int type,
                       int op, Comm *comm, void *stream) {
  size_t bytes = count * sizeOf(type);
  return addPart({comm,
                  {"ncclAllReduce", in, bytes},
                  bytes,
                  out,
                  stream,
                  [=](const std::vector<Request> &all, char *made) {
                    reduce(all, 0, count, type, op, made);
                  },
                  0,
                  std::vector<char>(bytes)});
}

FAKE int ncclReduceScatter(const void *in, void *out, size_t count, int type,
                           int op, Comm *comm, void *stream) {
  size_t bytes = count * sizeOf(type), size = comm->clique->size;
  size_t rank = static_cast<size_t>(comm->rank);
  return addPart({comm,
                  {"ncclReduceScatter", in, bytes},
                  bytes * size,
                  out,
                  stream,
                  [=](const std::vector<Request> &all, char *made) {
                    reduce(all, rank * count, count, type, op, made);
                  },
                  0,
                  std::vector<char>(bytes)});
}

FAKE int ncclBroadcast(const void *in, void *out, size_t count, int type,
                       int root, Comm *comm, void *stream) {
  size_t bytes = count * sizeOf(type);
  if (root < 0 || static_cast<size_t>(root) >= comm->clique->size)
    return refuse("a broadcast from a rank that is not there");
  return addPart({comm,
                  {"ncclBroadcast", in, bytes},
                  comm->rank == root ? bytes : 0,
                  out,
                  stream,
                  [=](const std::vector<Request> &all, char *made) {
                    std::memcpy(made, all[root].in, bytes);
                  },
                  0,
                  std::vector<char>(bytes)});
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
  std::vector<Part> ofCollectives;
  ofCollectives.swap(parts);
  std::vector<Comm *> joined;
  joined.swap(joining);
  int fault = finishJoining(joined);
  if (!fault)
    fault = doNowOrLater(std::move(ofCollectives), numberAndRun);
  return fault ? fault : doNowOrLater(std::move(queued), runMessages);
}
