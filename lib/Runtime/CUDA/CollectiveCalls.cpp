// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- CollectiveCalls.cpp - Collectives of programs through NCCL --------===//
//
// A collective runs on the stream where the program puts it, or else on the
// compute stream; one that is started, on the COMM stream. A group has a
// communicator for each of these streams. All members run the same program, so
// they queue the same operations on all of them in the same order, which is
// what NCCL asks for, also where communicators are used side by side.
//
// NCCL gathers and scatters whole buffers. Where the dimension is not the
// outermost one, blocks pass through a buffer in which they are contiguous;
// copies of rows bring them there and back. That buffer counts as the
// program's; programs that we compile arrange blocks themselves, and need none.
//
// What NCCL has no operation for is sends and receives in a group: all-to-all,
// permute and halo exchange.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CUDA/Collectives.h"
#include "lib/Runtime/MeshAxes.h"

#include <algorithm>

namespace hyperparallel::runtime::cuda {

namespace {

/// A group as one of its members sees it.
struct Group {
  std::vector<int64_t> ids; ///< of its members in the mesh, by rank
  int rank = 0;
  nccl::Comm comm = nullptr; ///< null in a group of one
  int64_t size() const { return static_cast<int64_t>(ids.size()); }
};

/// The device of the current run that has a place in the caller's mesh.
const Device *deviceAt(const Device &device, int64_t id) {
  for (const Device *other : device.context->launched)
    if (other->launch.group == device.launch.group && other->launch.rank == id)
      return other;
  return nullptr;
}

hp_status findGroup(Device &device, std::vector<int64_t> ids, Group &out) {
  out.ids = std::move(ids);
  std::string key = std::to_string(device.context->generation) + " " +
                    std::to_string(device.current) + ":";
  for (size_t rank = 0; rank < out.ids.size(); ++rank) {
    const Device *member = deviceAt(device, out.ids[rank]);
    if (!member)
      return fail(HP_INVALID_ARGUMENT,
                  "a collective's axes name device %lld of a mesh of %lld",
                  static_cast<long long>(out.ids[rank]),
                  static_cast<long long>(device.meshSize));
    if (member == &device)
      out.rank = static_cast<int>(rank);
    key += " " + std::to_string(member->ordinal);
  }
  if (out.size() == 1)
    return HP_OK;
  Nccl &nccl = device.context->collectives;
  nccl::Comm &comm = device.comms[key];
  if (!comm) {
    nccl::UniqueId id;
    hp_status status = nccl.load();
    if (status == HP_OK)
      status = nccl.meet(key, out.size(), &id);
    if (status == HP_OK)
      status = nccl.check(
          nccl.init(&comm, static_cast<int>(out.size()), id, out.rank),
          "joining a group of devices");
    if (status != HP_OK)
      return status;
  }
  out.comm = comm;
  return HP_OK;
}

hp_status findGroup(Device &device, const hp_axis *axes, int64_t count,
                    Group &out) {
  hp_status status = checkAxes(axes, count, device.meshSize);
  if (status != HP_OK)
    return status;
  int64_t size = 1;
  for (int64_t i = 0; i < count; ++i)
    size *= axes[i].size;
  std::vector<int64_t> ids(size);
  for (int64_t index = 0; index < size; ++index)
    ids[index] = withIndexAlong(device.launch.rank, axes, count, index);
  return findGroup(device, std::move(ids), out);
}

/// All devices of the caller's mesh.
hp_status findMesh(Device &device, Group &out) {
  std::vector<int64_t> ids(device.meshSize);
  for (int64_t id = 0; id < device.meshSize; ++id)
    ids[id] = id;
  return findGroup(device, std::move(ids), out);
}

//===----------------------------------------------------------------------===//
// Operations on a stream
//===----------------------------------------------------------------------===//

/// One collective while it is queued. Temporary buffers go when it does.
class Queue {
public:
  Queue(Device &device, const Group &group)
      : device(device), driver(device.context->driver),
        nccl(device.context->collectives), group(group),
        stream(streamOf(device, device.current)) {}
  ~Queue() {
    for (void *buffer : buffers)
      giveRunMemory(device, buffer, stream);
  }

  hp_status temporary(int64_t bytes, char **out) {
    void *pointer = nullptr;
    hp_status status =
        takeRunMemory(device, HP_TIER_DEVICE, bytes, stream, &pointer);
    if (status == HP_OK)
      buffers.push_back(pointer);
    *out = static_cast<char *>(pointer);
    return status;
  }

  hp_status copyRows(void *to, int64_t toPitch, const void *from,
                     int64_t fromPitch, int64_t width, int64_t rows) {
    if (width * rows == 0)
      return HP_OK;
    Copy2D copy = describeRows(to, toPitch, from, fromPitch, width, rows);
    return driver.check(driver.copy2DAsync(&copy, stream), "moving blocks");
  }

  hp_status clear(void *to, int64_t bytes) {
    return bytes == 0 ? HP_OK
                      : driver.check(driver.setBytesAsync(
                                         reinterpret_cast<DevicePointer>(to), 0,
                                         static_cast<size_t>(bytes), stream),
                                     "clearing a window");
  }

  /// Sends `size[r]` bytes at `from[r]` to each rank, and receives as many as
  /// the other says at `to[r]`.
  hp_status exchange(const std::vector<const char *> &from,
                     const std::vector<int64_t> &sent,
                     const std::vector<char *> &to,
                     const std::vector<int64_t> &received) {
    int result = nccl.groupStart();
    for (int64_t rank = 0; rank < group.size(); ++rank) {
      int peer = static_cast<int>(rank);
      if (result == 0 && sent[rank] > 0)
        result = nccl.send(from[rank], static_cast<size_t>(sent[rank]),
                           nccl::Int8, peer, group.comm, stream);
      if (result == 0 && received[rank] > 0)
        result = nccl.recv(to[rank], static_cast<size_t>(received[rank]),
                           nccl::Int8, peer, group.comm, stream);
      if (rank != group.rank)
        moved += received[rank];
    }
    int ended = nccl.groupEnd();
    return nccl.check(result ? result : ended, "exchanging blocks");
  }

  Device &device;
  Driver &driver;
  Nccl &nccl;
  const Group &group;
  StreamHandle stream;
  int64_t moved = 0;

private:
  std::vector<void *> buffers;
};

hp_status gather(Queue &queue, const void *in, void *out, int64_t outer,
                 int64_t width) {
  const Group &group = queue.group;
  char *blocks = static_cast<char *>(out);
  hp_status status = HP_OK;
  if (outer > 1)
    status = queue.temporary(outer * width * group.size(), &blocks);
  if (status == HP_OK)
    status = queue.nccl.check(
        queue.nccl.allGather(in, blocks, static_cast<size_t>(outer * width),
                             nccl::Int8, group.comm, queue.stream),
        "gathering");
  for (int64_t rank = 0; status == HP_OK && outer > 1 && rank < group.size();
       ++rank)
    status = queue.copyRows(static_cast<char *>(out) + rank * width,
                            group.size() * width, blocks + rank * outer * width,
                            width, width, outer);
  queue.moved = (group.size() - 1) * outer * width;
  return status;
}

hp_status scatter(Queue &queue, const void *in, void *out, int64_t outer,
                  int64_t count, int64_t dtype, int type, int how) {
  const Group &group = queue.group;
  int64_t width = count * dtypeBytes(dtype);
  const char *blocks = static_cast<const char *>(in);
  hp_status status = HP_OK;
  if (outer > 1) {
    char *packed = nullptr;
    status = queue.temporary(outer * width * group.size(), &packed);
    for (int64_t rank = 0; status == HP_OK && rank < group.size(); ++rank)
      status = queue.copyRows(packed + rank * outer * width, width,
                              blocks + rank * width, group.size() * width,
                              width, outer);
    blocks = packed;
  }
  queue.moved = (group.size() - 1) * outer * width;
  return status != HP_OK
             ? status
             : queue.nccl.check(queue.nccl.reduceScatter(
                                    blocks, out,
                                    static_cast<size_t>(outer * count), type,
                                    how, group.comm, queue.stream),
                                "reducing and scattering");
}

hp_status toAll(Queue &queue, const void *in, void *out, int64_t rank,
                const int64_t *shape, int64_t split, int64_t concat,
                int64_t elementBytes) {
  int64_t size = queue.group.size();
  auto product = [&](int64_t begin, int64_t end) {
    int64_t result = 1;
    for (int64_t i = begin; i < end; ++i)
      result *= i == split ? shape[i] / size : shape[i];
    return result;
  };
  int64_t block = product(0, rank) * elementBytes;
  // Rows of a block: in the input along split, in the output along concat.
  int64_t inRows = product(0, split);
  int64_t inWidth = product(split, rank) * elementBytes;
  int64_t outRows = product(0, concat);
  int64_t outWidth = product(concat, rank) * elementBytes;
  // What is one row is in place.
  char *packed = nullptr, *arrived = static_cast<char *>(out);
  const char *blocks = static_cast<const char *>(in);
  hp_status status = HP_OK;
  if (inRows > 1) {
    status = queue.temporary(block * size, &packed);
    blocks = packed;
  }
  if (status == HP_OK && outRows > 1)
    status = queue.temporary(block * size, &arrived);
  for (int64_t r = 0; status == HP_OK && inRows > 1 && r < size; ++r)
    status = queue.copyRows(packed + r * block, inWidth,
                            static_cast<const char *>(in) + r * inWidth,
                            size * inWidth, inWidth, inRows);
  std::vector<const char *> from(size);
  std::vector<char *> to(size);
  for (int64_t r = 0; r < size; ++r) {
    from[r] = blocks + r * block;
    to[r] = arrived + r * block;
  }
  std::vector<int64_t> bytes(size, block);
  if (status == HP_OK)
    status = queue.exchange(from, bytes, to, bytes);
  for (int64_t r = 0; status == HP_OK && outRows > 1 && r < size; ++r)
    status =
        queue.copyRows(static_cast<char *>(out) + r * outWidth, size * outWidth,
                       arrived + r * block, outWidth, outWidth, outRows);
  return status;
}

hp_status halo(Queue &queue, const void *in, void *out, int64_t outer,
               int64_t inDim, int64_t inner, int64_t global, int64_t stride,
               int64_t lo, int64_t length) {
  const Group &group = queue.group;
  int64_t size = group.size();
  // What the receiver's window has of the sender's block: global positions.
  auto overlap = [&](int64_t sender, int64_t receiver, int64_t &begin,
                     int64_t &end) {
    begin = std::max(receiver * stride + lo, sender * inDim);
    end = std::min(
        {receiver * stride + lo + length, (sender + 1) * inDim, global});
    return std::max<int64_t>(end - begin, 0);
  };
  hp_status status = queue.clear(out, outer * length * inner);
  std::vector<const char *> from(size);
  std::vector<char *> to(size);
  std::vector<int64_t> sent(size), received(size);
  int64_t begin = 0, end = 0;
  // What is one row goes from its place to its place.
  for (int64_t r = 0; status == HP_OK && r < size; ++r) {
    char *packed = nullptr, *arrived = nullptr;
    int64_t count = overlap(group.rank, r, begin, end);
    int64_t first = count > 0 ? (begin - group.rank * inDim) * inner : 0;
    const char *source = static_cast<const char *>(in) + first;
    sent[r] = count * inner * outer;
    if (sent[r] > 0 && outer > 1) {
      status = queue.temporary(sent[r], &packed);
      if (status == HP_OK)
        status = queue.copyRows(packed, count * inner, source, inDim * inner,
                                count * inner, outer);
      source = packed;
    }
    received[r] = overlap(r, group.rank, begin, end) * inner * outer;
    if (outer == 1 && received[r] > 0)
      arrived = static_cast<char *>(out) +
                (begin - (group.rank * stride + lo)) * inner;
    else if (status == HP_OK && received[r] > 0)
      status = queue.temporary(received[r], &arrived);
    from[r] = source;
    to[r] = arrived;
  }
  if (status == HP_OK && size > 1)
    status = queue.exchange(from, sent, to, received);
  bool isInPlace = outer == 1 && size > 1;
  for (int64_t r = 0; status == HP_OK && !isInPlace && r < size; ++r) {
    int64_t count = overlap(r, group.rank, begin, end);
    int64_t at = begin - (group.rank * stride + lo);
    status = queue.copyRows(static_cast<char *>(out) + at * inner,
                            length * inner, size > 1 ? to[r] : from[r],
                            count * inner, count * inner, outer);
  }
  return status;
}

//===----------------------------------------------------------------------===//
// What programs call
//===----------------------------------------------------------------------===//

/// Queues a collective where the program's go. In a group of one it is a copy,
/// of `aloneBytes`.
template <typename Operation>
hp_status queueCollective(Device &device, hp_collective kind,
                          const Group &group, const void *in, void *out,
                          int64_t aloneBytes, Operation operation) {
  Queue queue(device, group);
  if (group.size() == 1 && aloneBytes >= 0) {
    Driver &driver = device.context->driver;
    return aloneBytes == 0 || in == out
               ? HP_OK
               : driver.check(
                     driver.copyAsync(reinterpret_cast<DevicePointer>(out),
                                      reinterpret_cast<DevicePointer>(in),
                                      static_cast<size_t>(aloneBytes),
                                      queue.stream),
                     "copying");
  }
  static const char *const names[] = {"all_gather",     "all_reduce",
                                      "reduce_scatter", "all_to_all",
                                      "permute",        "halo_exchange"};
  hp_status status = traced(
      device, device.current, "collective", std::max<int64_t>(aloneBytes, 0),
      [&] { return std::string(names[kind]); },
      [&] { return operation(queue); });
  device.stats.collectives[kind] += group.size() > 1;
  device.stats.moved[kind] += queue.moved;
  return status;
}

/// Runs the body of a call, which returns a status and holds what it needs;
/// only then may the program be left.
template <typename Body>
void makeCall(Body body) {
  Device &device = currentDevice();
  proceed(device, body(device));
}

void gatherCall(const void *in, void *out, int64_t outer, int64_t dim,
                int64_t inner, int32_t dtype, const hp_axis *axes,
                int64_t naxes) {
  makeCall([&](Device &device) -> hp_status {
    Group group;
    hp_status status = findGroup(device, axes, naxes, group);
    if (status != HP_OK)
      return status;
    int64_t width = dim * inner * dtypeBytes(dtype);
    return queueCollective(
        device, HP_ALL_GATHER, group, in, out, outer * width,
        [&](Queue &queue) { return gather(queue, in, out, outer, width); });
  });
}

void reduceCall(const void *in, void *out, int64_t count, int32_t dtype,
                int32_t op, const hp_axis *axes, int64_t naxes) {
  makeCall([&](Device &device) -> hp_status {
    Group group;
    hp_status status = findGroup(device, axes, naxes, group);
    if (status != HP_OK)
      return status;
    int type = 0, how = 0;
    if (group.size() > 1)
      status = nccl::findReduction(dtype, op, &type, &how);
    if (status != HP_OK)
      return status;
    return queueCollective(
        device, HP_ALL_REDUCE, group, in, out, count * dtypeBytes(dtype),
        [&](Queue &queue) {
          queue.moved =
              2 * (group.size() - 1) * count * dtypeBytes(dtype) / group.size();
          return queue.nccl.check(
              queue.nccl.allReduce(in, out, static_cast<size_t>(count), type,
                                   how, group.comm, queue.stream),
              "reducing");
        });
  });
}

void scatterCall(const void *in, void *out, int64_t outer, int64_t dim,
                 int64_t inner, int32_t dtype, int32_t op, const hp_axis *axes,
                 int64_t naxes) {
  makeCall([&](Device &device) -> hp_status {
    Group group;
    hp_status status = findGroup(device, axes, naxes, group);
    if (status != HP_OK)
      return status;
    int type = 0, how = 0;
    if (group.size() > 1)
      status = nccl::findReduction(dtype, op, &type, &how);
    if (status != HP_OK)
      return status;
    return queueCollective(
        device, HP_REDUCE_SCATTER, group, in, out,
        outer * dim * inner * dtypeBytes(dtype), [&](Queue &queue) {
          return scatter(queue, in, out, outer, dim * inner, dtype, type, how);
        });
  });
}

void toAllCall(const void *in, void *out, int64_t rank, const int64_t *shape,
               int64_t split, int64_t concat, int64_t elementBytes,
               const hp_axis *axes, int64_t naxes) {
  makeCall([&](Device &device) -> hp_status {
    Group group;
    hp_status status = findGroup(device, axes, naxes, group);
    if (status != HP_OK)
      return status;
    int64_t bytes = elementBytes;
    for (int64_t i = 0; i < rank; ++i)
      bytes *= shape[i];
    return queueCollective(device, HP_ALL_TO_ALL, group, in, out, bytes,
                           [&](Queue &queue) {
                             return toAll(queue, in, out, rank, shape, split,
                                          concat, elementBytes);
                           });
  });
}

void permuteCall(const void *in, void *out, int64_t bytes, const hp_axis *from,
                 int64_t numFrom, const hp_axis *to, int64_t numTo) {
  makeCall([&](Device &device) -> hp_status {
    Group group;
    hp_status status = findMesh(device, group);
    if (status != HP_OK)
      return status;
    auto sourceOf = [&](int64_t id) {
      return withIndexAlong(id, from, numFrom, indexAlong(id, to, numTo));
    };
    int64_t size = group.size(), self = device.launch.rank;
    std::vector<const char *> sources(size, static_cast<const char *>(in));
    std::vector<char *> targets(size, static_cast<char *>(out));
    std::vector<int64_t> sent(size, 0), received(size, 0);
    for (int64_t id = 0; id < size; ++id)
      sent[id] = sourceOf(id) == self ? bytes : 0;
    received[sourceOf(self)] = bytes;
    return queueCollective(
        device, HP_PERMUTE, group, in, out, bytes, [&](Queue &queue) {
          return queue.exchange(sources, sent, targets, received);
        });
  });
}

void haloCall(const void *in, void *out, int64_t outer, int64_t inDim,
              int64_t inner, int64_t global, int64_t stride, int64_t lo,
              int64_t length, const hp_axis *axes, int64_t naxes) {
  makeCall([&](Device &device) -> hp_status {
    Group group;
    hp_status status = findGroup(device, axes, naxes, group);
    if (status != HP_OK)
      return status;
    return queueCollective(device, HP_HALO_EXCHANGE, group, in, out,
                           /*aloneBytes=*/-1, [&](Queue &queue) {
                             return halo(queue, in, out, outer, inDim, inner,
                                         global, stride, lo, length);
                           });
  });
}

/// The form that is started on the COMM stream, after what the compute stream
/// has queued, and waited for by hp_rt_wait.
template <auto Call>
struct Started;
template <typename... Arguments, void (*Call)(Arguments...)>
struct Started<Call> {
  static void *start(Arguments... arguments) {
    Device &device = currentDevice();
    StreamHandle comm = device.streams[HP_STREAM_COMM];
    proceed(device,
            device.context->driver.check(
                followStream(device, comm, device.streams[HP_STREAM_COMPUTE]),
                "ordering a collective"));
    device.current = HP_STREAM_COMM;
    Call(arguments...);
    device.current = HP_STREAM_COMPUTE;
    void *started = nullptr;
    proceed(device, addTransfer(device, comm, &started));
    return started;
  }
};

} // namespace

void *findCollective(const char *name) {
  static const Import imports[] = {
      makeImport("hp_rt_all_gather", gatherCall),
      makeImport("hp_rt_all_gather_start", Started<gatherCall>::start),
      makeImport("hp_rt_all_reduce", reduceCall),
      makeImport("hp_rt_all_reduce_start", Started<reduceCall>::start),
      makeImport("hp_rt_reduce_scatter", scatterCall),
      makeImport("hp_rt_reduce_scatter_start", Started<scatterCall>::start),
      makeImport("hp_rt_all_to_all", toAllCall),
      makeImport("hp_rt_all_to_all_start", Started<toAllCall>::start),
      makeImport("hp_rt_permute", permuteCall),
      makeImport("hp_rt_permute_start", Started<permuteCall>::start),
      makeImport("hp_rt_halo_exchange", haloCall),
  };
  return findIn(imports, sizeof(imports) / sizeof(*imports), name);
}

void forgetGroups(Device &device) {
  for (auto &entry : device.comms)
    if (entry.second)
      device.context->collectives.destroy(entry.second);
  device.comms.clear();
}

} // namespace hyperparallel::runtime::cuda
