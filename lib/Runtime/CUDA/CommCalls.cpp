// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- CommCalls.cpp - Communicators: group operations on streams --------===//
//
// Collectives are NCCL's. Sends and receives have tags, which NCCL has not:
// they go through the mailbox (Messages.h). In a group of hp_group_begin and
// hp_group_end NCCL's calls are put off by NCCL, and receives by us, since the
// host waits in them for the send.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/ArgumentChecks.h"
#include "lib/Runtime/CUDA/Collectives.h"
#include "lib/Runtime/TensorBlocks.h"

namespace hyperparallel::runtime::cuda {

/// What the members of a communicator share.
struct Circle {
  int64_t number; ///< from 1 on, for the mailbox
  std::vector<bool> joined;
  std::atomic<bool> isClosed{false};
  std::string name;
};

namespace {

struct Comm {
  const hp_backend_v1 *backend;
  Device *device;
  std::shared_ptr<Circle> circle;
  int64_t size = 1;
  int rank = 0;
  nccl::Comm handle = nullptr; ///< null in a group of one
  void *scratch = nullptr;     ///< of barriers
  SentMessages sent;
};

struct Receive {
  Comm *comm;
  StreamHandle stream;
  MessageKey key;
  void *buffer;
  int64_t bytes;
};

thread_local int groupDepth = 0;
thread_local std::vector<Receive> putOff;

Comm &commOf(hp_comm *comm) { return *reinterpret_cast<Comm *>(comm); }

StreamHandle handleOf(hp_stream *stream) {
  return reinterpret_cast<Stream *>(stream)->handle;
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

hp_status joinCircle(Context &context, const char *name,
                     std::vector<int64_t> ranks, Comm &comm) {
  std::lock_guard<std::mutex> lock(context.circleMutex);
  std::weak_ptr<Circle> &known = context.circles[{name, ranks}];
  comm.circle = known.lock();
  if (!comm.circle) {
    known = comm.circle = std::make_shared<Circle>();
    comm.circle->number = ++context.numCircles;
    comm.circle->joined.resize(ranks.size());
    comm.circle->name = name;
  }
  if (comm.circle->joined[comm.rank])
    return fail(HP_INVALID_ARGUMENT,
                "communicator '%s': device %d has joined already", name,
                comm.device->ordinal);
  comm.circle->joined[comm.rank] = true;
  return HP_OK;
}

hp_status createComm(hp_context *handle, const char *name, const int64_t *ranks,
                     int64_t count, hp_device *deviceHandle, hp_comm **out) {
  Context &context = *reinterpret_cast<Context *>(handle);
  auto comm = std::make_unique<Comm>();
  comm->backend = context.backend;
  comm->device = reinterpret_cast<Device *>(deviceHandle);
  comm->size = count;
  hp_status status = checkMembers(
      name, ranks, count, static_cast<int64_t>(context.devices.size()),
      comm->device ? comm->device->ordinal : -1, out, &comm->rank);
  if (status == HP_OK)
    status = enter(*comm->device);
  if (status == HP_OK)
    status = joinCircle(context, name,
                        std::vector<int64_t>(ranks, ranks + count), *comm);
  if (status == HP_OK && count > 1) {
    Nccl &nccl = context.collectives;
    nccl::UniqueId id;
    status = nccl.load();
    if (status == HP_OK)
      status = nccl.meet("communicator " + std::to_string(comm->circle->number),
                         count, &id);
    if (status == HP_OK)
      status = nccl.check(
          nccl.init(&comm->handle, static_cast<int>(count), id, comm->rank),
          "joining a communicator");
  }
  if (status == HP_OK)
    *out = reinterpret_cast<hp_comm *>(comm.release());
  return status;
}

hp_status destroyComm(hp_comm *handle) {
  std::unique_ptr<Comm> comm(&commOf(handle));
  Device &device = *comm->device;
  Context &context = *device.context;
  comm->circle->isClosed = true;
  context.mailbox.wake();
  hp_status status = enter(device);
  if (status == HP_OK)
    status = context.driver.check(context.driver.contextSynchronize(),
                                  "ending a communicator");
  hp_status freed =
      comm->sent.free(device, device.streams[HP_STREAM_COMPUTE], /*all=*/true);
  if (status == HP_OK)
    status = freed;
  if (status == HP_OK)
    status = freeMemory(device, comm->scratch, nullptr);
  if (comm->handle)
    context.collectives.destroy(comm->handle);
  return status;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

hp_status checkCall(const char *what, const void *in, const void *out,
                    int64_t count, int64_t dtype, hp_stream *stream) {
  bool isGood = stream && count >= 0 && (count == 0 || (in && out)) &&
                dtypeBytes(dtype) > 0;
  return isGood ? HP_OK
                : fail(HP_INVALID_ARGUMENT,
                       "%s: expected buffers, a count, a dtype and a stream",
                       what);
}

/// Queues an operation of NCCL; in a group of one a copy of `bytes`.
template <typename Operation>
hp_status queueCall(const char *what, Comm &comm, const void *in, void *out,
                    int64_t bytes, hp_stream *stream, Operation operation) {
  hp_status status = enter(*comm.device);
  if (status != HP_OK || bytes == 0)
    return status;
  Nccl &nccl = comm.device->context->collectives;
  if (comm.handle)
    return nccl.check(operation(nccl), what);
  Driver &driver = comm.device->context->driver;
  return in == out
             ? HP_OK
             : driver.check(driver.copyAsync(
                                reinterpret_cast<DevicePointer>(out),
                                reinterpret_cast<DevicePointer>(in),
                                static_cast<size_t>(bytes), handleOf(stream)),
                            what);
}

hp_status allGather(const void *in, void *out, int64_t count, hp_dtype dtype,
                    hp_comm *handle, hp_stream *stream) {
  Comm &comm = commOf(handle);
  hp_status status = checkCall("hp_all_gather", in, out, count, dtype, stream);
  int64_t bytes = count * dtypeBytes(dtype);
  return status != HP_OK
             ? status
             : queueCall("hp_all_gather", comm, in, out, bytes, stream,
                         [&](Nccl &nccl) {
                           return nccl.allGather(
                               in, out, static_cast<size_t>(bytes), nccl::Int8,
                               comm.handle, handleOf(stream));
                         });
}

hp_status checkReduction(const char *what, const Comm &comm, const void *in,
                         const void *out, int64_t count, int64_t dtype,
                         int64_t op, hp_stream *stream, int *type, int *how) {
  hp_status status = checkCall(what, in, out, count, dtype, stream);
  if (status == HP_OK && !canReduce(dtype, op))
    status = fail(HP_INVALID_ARGUMENT, "%s: %s of %s elements is not defined",
                  what, reductionName(op), dtypeName(dtype));
  return status == HP_OK && comm.size > 1
             ? nccl::findReduction(dtype, op, type, how)
             : status;
}

hp_status allReduce(const void *in, void *out, int64_t count, hp_dtype dtype,
                    hp_reduction op, hp_comm *handle, hp_stream *stream) {
  Comm &comm = commOf(handle);
  int type = 0, how = 0;
  hp_status status = checkReduction("hp_all_reduce", comm, in, out, count,
                                    dtype, op, stream, &type, &how);
  return status != HP_OK
             ? status
             : queueCall("hp_all_reduce", comm, in, out,
                         count * dtypeBytes(dtype), stream, [&](Nccl &nccl) {
                           return nccl.allReduce(
                               in, out, static_cast<size_t>(count), type, how,
                               comm.handle, handleOf(stream));
                         });
}

hp_status reduceScatter(const void *in, void *out, int64_t count,
                        hp_dtype dtype, hp_reduction op, hp_comm *handle,
                        hp_stream *stream) {
  Comm &comm = commOf(handle);
  int type = 0, how = 0;
  hp_status status = checkReduction("hp_reduce_scatter", comm, in, out, count,
                                    dtype, op, stream, &type, &how);
  return status != HP_OK
             ? status
             : queueCall("hp_reduce_scatter", comm, in, out,
                         count * dtypeBytes(dtype), stream, [&](Nccl &nccl) {
                           return nccl.reduceScatter(
                               in, out, static_cast<size_t>(count), type, how,
                               comm.handle, handleOf(stream));
                         });
}

hp_status allToAll(const void *in, void *out, int64_t count, hp_dtype dtype,
                   hp_comm *handle, hp_stream *stream) {
  Comm &comm = commOf(handle);
  hp_status status = checkCall("hp_all_to_all", in, out, count, dtype, stream);
  auto block = static_cast<size_t>(count * dtypeBytes(dtype));
  return status != HP_OK
             ? status
             : queueCall("hp_all_to_all", comm, in, out,
                         static_cast<int64_t>(block) * comm.size, stream,
                         [&](Nccl &nccl) {
                           int result = nccl.groupStart();
                           for (int rank = 0; rank < comm.size; ++rank) {
                             auto *from =
                                 static_cast<const char *>(in) + rank * block;
                             auto *to = static_cast<char *>(out) + rank * block;
                             if (result == 0)
                               result =
                                   nccl.send(from, block, nccl::Int8, rank,
                                             comm.handle, handleOf(stream));
                             if (result == 0)
                               result =
                                   nccl.recv(to, block, nccl::Int8, rank,
                                             comm.handle, handleOf(stream));
                           }
                           int ended = nccl.groupEnd();
                           return result ? result : ended;
                         });
}

hp_status broadcast(void *buffer, int64_t count, hp_dtype dtype, int64_t root,
                    hp_comm *handle, hp_stream *stream) {
  Comm &comm = commOf(handle);
  hp_status status = checkRank("hp_broadcast", "root", root, comm.size);
  if (status == HP_OK)
    status = checkCall("hp_broadcast", buffer, buffer, count, dtype, stream);
  int64_t bytes = count * dtypeBytes(dtype);
  return status != HP_OK
             ? status
             : queueCall("hp_broadcast", comm, buffer, buffer, bytes, stream,
                         [&](Nccl &nccl) {
                           return nccl.broadcast(
                               buffer, buffer, static_cast<size_t>(bytes),
                               nccl::Int8, static_cast<int>(root), comm.handle,
                               handleOf(stream));
                         });
}

/// A sum of one number: nobody has it before all have come.
hp_status barrier(hp_comm *handle, hp_stream *stream) {
  Comm &comm = commOf(handle);
  constexpr int64_t Bytes = 64;
  hp_status status = checkGiven(stream, "hp_barrier", "a stream");
  if (status == HP_OK)
    status = enter(*comm.device);
  if (status == HP_OK && comm.handle && !comm.scratch) {
    status = allocateMemory(*comm.device, HP_TIER_DEVICE, Bytes,
                            /*ofRun=*/false, nullptr, &comm.scratch);
    Driver &driver = comm.device->context->driver;
    if (status == HP_OK)
      status = driver.check(
          driver.setBytesAsync(reinterpret_cast<DevicePointer>(comm.scratch), 0,
                               Bytes, handleOf(stream)),
          "hp_barrier");
  }
  return status != HP_OK
             ? status
             : queueCall("hp_barrier", comm, comm.scratch, comm.scratch, Bytes,
                         stream, [&](Nccl &nccl) {
                           return nccl.allReduce(comm.scratch, comm.scratch, 1,
                                                 nccl::Int32, nccl::Sum,
                                                 comm.handle, handleOf(stream));
                         });
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// A buffer as a tensor of bytes, all of it one block.
template <typename Move>
hp_status moveBuffer(void *buffer, int64_t bytes, Move move) {
  const int64_t offset = 0;
  TensorBlocks whole = {
      static_cast<char *>(buffer), 1, &bytes, 1, nullptr, 0, 0};
  return move(TensorBlock(whole, &offset, &bytes));
}

hp_status send(const void *buffer, int64_t count, hp_dtype dtype, int64_t peer,
               int64_t tag, hp_comm *handle, hp_stream *stream) {
  Comm &comm = commOf(handle);
  hp_status status = checkCall("hp_send", buffer, buffer, count, dtype, stream);
  if (status == HP_OK)
    status = checkRank("hp_send", "peer", peer, comm.size);
  if (status == HP_OK)
    status = enter(*comm.device);
  if (status != HP_OK)
    return status;
  return moveBuffer(const_cast<void *>(buffer), count * dtypeBytes(dtype),
                    [&](const TensorBlock &block) {
                      return comm.sent.send(
                          *comm.device, handleOf(stream),
                          {comm.circle->number, comm.rank, peer, tag}, {block});
                    });
}

hp_status perform(const Receive &receive) {
  Comm &comm = *receive.comm;
  hp_status status = enter(*comm.device);
  if (status != HP_OK)
    return status;
  auto check = [&] {
    return comm.circle->isClosed
               ? fail(HP_CANCELLED, "communicator '%s': a member has left",
                      comm.circle->name.c_str())
               : HP_OK;
  };
  return moveBuffer(receive.buffer, receive.bytes,
                    [&](const TensorBlock &block) {
                      return receiveMessage(*comm.device, receive.stream,
                                            receive.key, {block}, check);
                    });
}

hp_status receive(void *buffer, int64_t count, hp_dtype dtype, int64_t peer,
                  int64_t tag, hp_comm *handle, hp_stream *stream) {
  Comm &comm = commOf(handle);
  hp_status status = checkCall("hp_recv", buffer, buffer, count, dtype, stream);
  if (status == HP_OK)
    status = checkRank("hp_recv", "peer", peer, comm.size);
  if (status != HP_OK)
    return status;
  Receive call = {&comm,
                  handleOf(stream),
                  {comm.circle->number, peer, comm.rank, tag},
                  buffer,
                  count * dtypeBytes(dtype)};
  if (groupDepth == 0)
    return perform(call);
  putOff.push_back(call);
  return HP_OK;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

hp_status beginGroup(hp_context *handle) {
  Nccl &nccl = reinterpret_cast<Context *>(handle)->collectives;
  hp_status status = nccl.load();
  if (status == HP_OK)
    status = nccl.check(nccl.groupStart(), "hp_group_begin");
  groupDepth += status == HP_OK;
  return status;
}

hp_status endGroup(hp_context *handle) {
  Nccl &nccl = reinterpret_cast<Context *>(handle)->collectives;
  if (groupDepth == 0)
    return fail(HP_INVALID_ARGUMENT,
                "hp_group_end: expected hp_group_begin before it");
  --groupDepth;
  hp_status status = nccl.check(nccl.groupEnd(), "hp_group_end");
  if (groupDepth > 0)
    return status;
  std::vector<Receive> calls;
  calls.swap(putOff);
  for (const Receive &call : calls)
    if (status == HP_OK)
      status = perform(call);
  return status;
}

} // namespace

void addCommEntries(hp_backend_v1 &table) {
  table.comm_create = createComm;
  table.comm_destroy = destroyComm;
  table.all_gather = allGather;
  table.all_reduce = allReduce;
  table.reduce_scatter = reduceScatter;
  table.all_to_all = allToAll;
  table.broadcast = broadcast;
  table.barrier = barrier;
  table.send = send;
  table.recv = receive;
  table.group_begin = beginGroup;
  table.group_end = endGroup;
}

} // namespace hyperparallel::runtime::cuda
