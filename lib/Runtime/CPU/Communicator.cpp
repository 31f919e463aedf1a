// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/Communicator.h"
#include "lib/Runtime/ArgumentChecks.h"
#include "lib/Runtime/CPU/Device.h"
#include "lib/Runtime/CPU/Reduce.h"
#include "lib/Runtime/CPU/Stream.h"
#include "lib/Runtime/Status.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace hyperparallel::runtime {

Circle::Circle(std::string name, std::vector<int64_t> ranks)
    : name(std::move(name)), ranks(std::move(ranks)),
      joined(this->ranks.size()) {}

std::shared_ptr<Circle> Circles::find(const std::string &name,
                                      const std::vector<int64_t> &ranks) {
  std::weak_ptr<Circle> &known = circles[{name, ranks}];
  std::shared_ptr<Circle> circle = known.lock();
  if (!circle)
    known = circle = std::make_shared<Circle>(name, ranks);
  return circle;
}

void Circles::closeAll() {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &entry : circles)
    if (std::shared_ptr<Circle> circle = entry.second.lock())
      circle->close("the context is being destroyed");
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

void Circle::close(std::string why) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (closed)
      return;
    closed = true;
    status = HP_CANCELLED;
    reason = std::move(why);
  }
  changed.notify_all();
}

/// Waits until all members have been counted.
hp_status Circle::await(std::unique_lock<std::mutex> &lock,
                        const int64_t &counter) {
  changed.notify_all();
  changed.wait(lock, [&] { return counter == size() || closed; });
  if (counter == size())
    return HP_OK;
  return failWith(status, "communicator '" + name + "': " + reason);
}

hp_status Circle::compare(const Round &round) const {
  for (size_t rank = 1; rank < round.calls.size(); ++rank)
    if (!sameCall(round.calls[0], round.calls[rank]))
      return failWith(HP_MISMATCH,
                      "communicator '" + name +
                          "': operations do not match: rank 0 calls " +
                          describe(round.calls[0]) + ", but rank " +
                          std::to_string(rank) + " calls " +
                          describe(round.calls[rank]));
  return HP_OK;
}

/// Runs without the lock but for the meeting of an all_reduce: the others'
/// calls do not change until all have left.
hp_status Circle::move(std::unique_lock<std::mutex> &lock, Round &round,
                       const Call &call) {
  std::vector<const Call *> members;
  for (const Call &member : round.calls)
    members.push_back(&member);
  lock.unlock();
  if (call.kind == HP_BROADCAST) {
    if (call.in != members[call.source]->in && call.inBytes > 0)
      std::memcpy(call.out, members[call.source]->in,
                  static_cast<size_t>(call.inBytes));
  } else if (call.kind != HP_ALL_REDUCE) {
    moveData(call, members.data(), size());
  } else {
    int64_t begin, end;
    reducedPart(call.shape[0], call.rank, size(), begin, end);
    reducePart(call, members.data(), size(), begin, end);
    lock.lock();
    ++round.met;
    hp_status status = await(lock, round.met);
    if (status != HP_OK)
      return status;
    lock.unlock();
    pullParts(call, members.data(), size());
  }
  lock.lock();
  return HP_OK;
}

hp_status Circle::perform(Call call, uint64_t number) {
  std::unique_lock<std::mutex> lock(mutex);
  Round &round = rounds[number];
  round.calls.resize(ranks.size());
  round.calls[call.rank] = call;
  ++round.arrived;
  hp_status result = await(lock, round.arrived);
  if (result == HP_OK)
    result = compare(round);
  if (result == HP_OK)
    result = move(lock, round, call);
  if (result != HP_OK)
    return result;
  ++round.left;
  result = await(lock, round.left);
  // Whoever is last to look takes the round away.
  if (++round.met == size() * (call.kind == HP_ALL_REDUCE ? 2 : 1))
    rounds.erase(number);
  return result;
}

void Circle::send(const Call &call) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    messages[{call.rank, call.peer, call.tag}].emplace_back(
        call.in, call.in + call.inBytes);
  }
  changed.notify_all();
}

hp_status Circle::receive(const Call &call) {
  std::unique_lock<std::mutex> lock(mutex);
  std::deque<std::vector<char>> &queue =
      messages[{call.peer, call.rank, call.tag}];
  changed.wait(lock, [&] { return !queue.empty() || closed; });
  if (queue.empty())
    return failWith(status, "communicator '" + name + "': " + reason);
  std::vector<char> message = std::move(queue.front());
  queue.pop_front();
  if (static_cast<int64_t>(message.size()) != call.inBytes)
    return fail(HP_MISMATCH,
                "communicator '%s': expected a message of %lld bytes but got "
                "%zu",
                name.c_str(), static_cast<long long>(call.inBytes),
                message.size());
  if (!message.empty())
    std::memcpy(call.out, message.data(), message.size());
  return HP_OK;
}

//===----------------------------------------------------------------------===//
// The table's entries
//===----------------------------------------------------------------------===//

namespace {

/// One member's handle.
struct Comm {
  const hp_backend_v1 *backend;
  std::shared_ptr<Circle> circle;
  Device *device;
  int rank;
  uint64_t queued; ///< operations so far
};

/// A receive that waits for the end of a group: sends that are queued behind it
/// on its stream may be what others wait for.
struct Receive {
  Stream *stream;
  int64_t bytes;
  std::function<hp_status()> action;
};

thread_local int groupDepth = 0;
thread_local std::vector<Receive> putOff;

void queueReceive(Receive receive) {
  receive.stream->enqueue("recv", receive.bytes, std::move(receive.action));
}

Comm *commOf(hp_comm *comm) { return reinterpret_cast<Comm *>(comm); }

hp_status createComm(hp_context *handle, const char *name, const int64_t *ranks,
                     int64_t numRanks, hp_device *deviceHandle, hp_comm **out) {
  Context &context = *reinterpret_cast<Context *>(handle);
  Device *device = reinterpret_cast<Device *>(deviceHandle);
  int rank = -1;
  hp_status status = checkMembers(name, ranks, numRanks,
                                  static_cast<int64_t>(context.devices.size()),
                                  device ? device->ordinal : -1, out, &rank);
  if (status != HP_OK)
    return status;
  std::vector<int64_t> order(ranks, ranks + numRanks);
  for (int64_t member : order)
    if (isRemote(*context.devices[member]))
      return fail(HP_UNIMPLEMENTED,
                  "communicator '%s': device %lld is another process's; "
                  "collectives on streams are between devices of one process",
                  name, static_cast<long long>(member));
  std::lock_guard<std::mutex> lock(context.circles.mutex);
  std::shared_ptr<Circle> circle = context.circles.find(name, order);
  if (circle->joined[rank])
    return fail(HP_INVALID_ARGUMENT,
                "communicator '%s': device %d has joined already", name,
                device->ordinal);
  circle->joined[rank] = true;
  *out = reinterpret_cast<hp_comm *>(
      new Comm{context.backend, circle, device, rank, 0});
  return HP_OK;
}

hp_status destroyComm(hp_comm *handle) {
  Comm *comm = commOf(handle);
  comm->circle->close("device " + std::to_string(comm->device->ordinal) +
                      " has left");
  delete comm;
  return HP_OK;
}

hp_status makeCall(const char *what, hp_collective kind, const void *in,
                   void *out, int64_t count, int64_t dtype, int64_t op,
                   const Comm &comm, hp_stream *stream, Call &call) {
  if (!stream || (count > 0 && (!in || !out)) || count < 0 ||
      dtypeBytes(dtype) == 0)
    return fail(HP_INVALID_ARGUMENT,
                "hp_%s: expected buffers, a count, a dtype and a stream", what);
  if (op >= 0 && !canReduce(dtype, op))
    return fail(HP_INVALID_ARGUMENT, "hp_%s: %s of %s elements is not defined",
                what, reductionName(op), dtypeName(dtype));
  call.kind = kind;
  call.in = static_cast<const char *>(in);
  call.out = static_cast<char *>(out);
  call.dtype = dtype;
  call.op = op;
  call.elementBytes = dtypeBytes(dtype);
  call.inBytes = count * call.elementBytes;
  call.rank = comm.rank;
  return HP_OK;
}

hp_status enqueue(const char *what, Comm &comm, const Call &call,
                  hp_stream *stream) {
  uint64_t number = comm.queued++;
  std::shared_ptr<Circle> circle = comm.circle;
  reinterpret_cast<Stream *>(stream)->enqueue(
      what, call.inBytes,
      [circle, call, number] { return circle->perform(call, number); });
  return HP_OK;
}

hp_status allGather(const void *in, void *out, int64_t count, hp_dtype dtype,
                    hp_comm *comm, hp_stream *stream) {
  Call call;
  hp_status status = makeCall("all_gather", HP_ALL_GATHER, in, out, count,
                              dtype, -1, *commOf(comm), stream, call);
  if (status != HP_OK)
    return status;
  call.shape[0] = call.shape[2] = 1;
  call.shape[1] = count;
  return enqueue("all_gather", *commOf(comm), call, stream);
}

hp_status allReduce(const void *in, void *out, int64_t count, hp_dtype dtype,
                    hp_reduction op, hp_comm *comm, hp_stream *stream) {
  Call call;
  hp_status status = makeCall("all_reduce", HP_ALL_REDUCE, in, out, count,
                              dtype, op, *commOf(comm), stream, call);
  if (status != HP_OK)
    return status;
  call.shape[0] = count;
  return enqueue("all_reduce", *commOf(comm), call, stream);
}

hp_status reduceScatter(const void *in, void *out, int64_t count,
                        hp_dtype dtype, hp_reduction op, hp_comm *comm,
                        hp_stream *stream) {
  Call call;
  hp_status status = makeCall("reduce_scatter", HP_REDUCE_SCATTER, in, out,
                              count * commOf(comm)->circle->size(), dtype, op,
                              *commOf(comm), stream, call);
  if (status != HP_OK)
    return status;
  call.shape[0] = call.shape[2] = 1;
  call.shape[1] = count;
  return enqueue("reduce_scatter", *commOf(comm), call, stream);
}

hp_status allToAll(const void *in, void *out, int64_t count, hp_dtype dtype,
                   hp_comm *comm, hp_stream *stream) {
  Call call;
  int64_t size = commOf(comm)->circle->size();
  hp_status status =
      makeCall("all_to_all", HP_ALL_TO_ALL, in, out, count * size, dtype, -1,
               *commOf(comm), stream, call);
  if (status != HP_OK)
    return status;
  std::fill_n(call.shape, 5, 1);
  call.shape[1] = count * size;
  return enqueue("all_to_all", *commOf(comm), call, stream);
}

hp_status broadcast(void *buffer, int64_t count, hp_dtype dtype, int64_t root,
                    hp_comm *comm, hp_stream *stream) {
  Call call;
  hp_status status =
      checkRank("hp_broadcast", "root", root, commOf(comm)->circle->size());
  if (status == HP_OK)
    status = makeCall("broadcast", HP_BROADCAST, buffer, buffer, count, dtype,
                      -1, *commOf(comm), stream, call);
  if (status != HP_OK)
    return status;
  call.source = static_cast<int>(root);
  call.shape[0] = root; // compared between members
  return enqueue("broadcast", *commOf(comm), call, stream);
}

hp_status barrier(hp_comm *comm, hp_stream *stream) {
  Call call;
  hp_status status = makeCall("barrier", HP_BARRIER, nullptr, nullptr, 0, HP_I8,
                              -1, *commOf(comm), stream, call);
  return status == HP_OK ? enqueue("barrier", *commOf(comm), call, stream)
                         : status;
}

hp_status makeMessage(const char *what, hp_collective kind, const void *in,
                      void *out, int64_t count, int64_t dtype, int64_t peer,
                      int64_t tag, const Comm &comm, hp_stream *stream,
                      Call &call) {
  hp_status status =
      makeCall(what, kind, in, out, count, dtype, -1, comm, stream, call);
  if (status == HP_OK)
    status = checkRank(what, "peer", peer, comm.circle->size());
  call.peer = peer;
  call.tag = tag;
  return status;
}

hp_status send(const void *buffer, int64_t count, hp_dtype dtype, int64_t peer,
               int64_t tag, hp_comm *comm, hp_stream *stream) {
  Call call;
  hp_status status =
      makeMessage("send", HP_SEND, buffer, const_cast<void *>(buffer), count,
                  dtype, peer, tag, *commOf(comm), stream, call);
  if (status != HP_OK)
    return status;
  std::shared_ptr<Circle> circle = commOf(comm)->circle;
  reinterpret_cast<Stream *>(stream)->enqueue("send", call.inBytes,
                                              [circle, call] {
                                                circle->send(call);
                                                return HP_OK;
                                              });
  return HP_OK;
}

hp_status receive(void *buffer, int64_t count, hp_dtype dtype, int64_t peer,
                  int64_t tag, hp_comm *comm, hp_stream *stream) {
  Call call;
  hp_status status = makeMessage("recv", HP_RECV, buffer, buffer, count, dtype,
                                 peer, tag, *commOf(comm), stream, call);
  if (status != HP_OK)
    return status;
  std::shared_ptr<Circle> circle = commOf(comm)->circle;
  Receive receive = {reinterpret_cast<Stream *>(stream), call.inBytes,
                     [circle, call] { return circle->receive(call); }};
  if (groupDepth > 0)
    putOff.push_back(std::move(receive));
  else
    queueReceive(std::move(receive));
  return HP_OK;
}

hp_status beginGroup(hp_context *) {
  ++groupDepth;
  return HP_OK;
}

hp_status endGroup(hp_context *) {
  if (groupDepth == 0)
    return fail(HP_INVALID_ARGUMENT,
                "hp_group_end: expected hp_group_begin before it");
  if (--groupDepth > 0)
    return HP_OK;
  for (Receive &receive : putOff)
    queueReceive(std::move(receive));
  putOff.clear();
  return HP_OK;
}

} // namespace

void addCommunicatorEntries(hp_backend_v1 &table) {
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

} // namespace hyperparallel::runtime
