// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- SpreadCollectives.cpp - Groups with members in several processes --===//
//
// The same collectives as in Collectives.h, by messages, to the same bits:
//
//   start:  each member packs what every other one needs of its buffer
//           (findRows), behind a description of its call, and sends it.
//   finish: each takes the others' messages in rank order, compares the
//           descriptions with its own call, and unpacks or reduces them.
//
// A large all-reduce sends each member its part, reduces that, and sends the
// result to all. Sends never wait, so neither does start. Each collective has
// channels of its own, since several may be under way, and be finished in
// another order than they were started in.
//
// Cost: the bytes of a bandwidth-optimal algorithm, in G - 1 messages a member
// (twice for a large all-reduce), each of them copied on both sides.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/Device.h"
#include "lib/Runtime/CPU/Reduce.h"
#include "lib/Runtime/Status.h"

#include <algorithm>
#include <cstring>

namespace hyperparallel::runtime {
namespace {

/// What both ends of a message must agree on.
struct Description {
  explicit Description(const Call &call)
      : kind(call.kind), dtype(call.dtype), op(call.op), inBytes(call.inBytes),
        elementBytes(call.elementBytes), order(call.order) {
    std::copy_n(call.shape, 7, shape);
  }
  Description() = default;

  Call asCall() const {
    Call call;
    call.kind = static_cast<hp_collective>(kind);
    call.dtype = dtype;
    call.op = op;
    call.inBytes = inBytes;
    call.elementBytes = elementBytes;
    call.order = static_cast<int>(order);
    std::copy_n(shape, 7, call.shape);
    return call;
  }

  int64_t kind, dtype, op, inBytes, elementBytes, order, shape[7];
};

enum Phase : int64_t { First, Second };

ChannelKey keyOf(const Device &device, const Call &call, Phase phase,
                 const Device &from, const Device &to) {
  ChannelKey key = {static_cast<int64_t>(device.context->run.number),
                    from.ordinal, to.ordinal, phase, call.sequence};
  key.insert(key.end(), call.group->key.begin(), call.group->key.end());
  return key;
}

/// A message under way: the description, and room for `bytes`.
std::vector<char> makeMessage(const Call &call, int64_t bytes) {
  Description description(call);
  std::vector<char> message(sizeof(description) + bytes);
  std::memcpy(message.data(), &description, sizeof(description));
  return message;
}

int64_t packedBytes(const Call &call, int64_t from, int64_t to) {
  int64_t bytes = 0;
  findRows(call, from, to, call.group->size(),
           [&](const Rows &rows) { bytes += rows.width * rows.count; });
  return bytes;
}

/// What `to` needs of this member, without gaps.
std::vector<char> pack(const Call &call, int64_t to) {
  std::vector<char> message =
      makeMessage(call, packedBytes(call, call.rank, to));
  char *next = message.data() + sizeof(Description);
  findRows(call, call.rank, to, call.group->size(), [&](const Rows &rows) {
    copyRows(next, call.in,
             {0, rows.width, rows.in, rows.inPitch, rows.width, rows.count});
    next += rows.width * rows.count;
  });
  return message;
}

void unpack(const Call &call, int64_t from, const char *packed) {
  findRows(call, from, call.rank, call.group->size(), [&](const Rows &rows) {
    copyRows(call.out, packed,
             {rows.out, rows.outPitch, 0, rows.width, rows.width, rows.count});
    packed += rows.width * rows.count;
  });
}

/// What a member needs for an all_reduce: all, or its part.
void reducedRange(const Call &call, int64_t rank, int64_t &begin,
                  int64_t &end) {
  begin = 0;
  end = call.shape[0];
  if (reducesInParts(call, call.group->size()))
    reducedPart(call.shape[0], rank, call.group->size(), begin, end);
}

std::vector<char> packRange(const Call &call, const char *data, int64_t begin,
                            int64_t end) {
  int64_t bytes = (end - begin) * call.elementBytes;
  std::vector<char> message = makeMessage(call, bytes);
  if (bytes > 0)
    std::memcpy(message.data() + sizeof(Description),
                data + begin * call.elementBytes, bytes);
  return message;
}

/// The message of a member, checked against our call; `data` is behind the
/// description.
hp_status take(Lane &lane, Call &call, Phase phase, int64_t from, int64_t bytes,
               std::vector<char> &message) {
  Group &group = *call.group;
  Device &sender = *group.members[from];
  call.peer = sender.ordinal;
  ChannelKey key = keyOf(*lane.owner, call, phase, sender, *lane.owner);
  hp_status status = takeMessage(lane, key, call, message);
  if (status != HP_OK)
    return status;
  lane.owner->context->collectives.dropChannel(key);
  Description description;
  if (message.size() < sizeof(description))
    return fail(HP_INTERNAL, "a message without its description came");
  std::memcpy(&description, message.data(), sizeof(description));
  Call other = description.asCall();
  if (!sameCall(call, other)) {
    // In rank order, so that both ends say the same.
    bool isFirst = call.rank < from;
    int first = static_cast<int>(isFirst ? call.rank : from);
    int second = static_cast<int>(isFirst ? from : call.rank);
    return mismatch(group, first, isFirst ? call : other, second,
                    isFirst ? other : call);
  }
  if (static_cast<int64_t>(message.size() - sizeof(description)) != bytes)
    return fail(HP_INTERNAL, "expected %lld bytes from device %d but got %zu",
                static_cast<long long>(bytes), sender.ordinal,
                message.size() - sizeof(description));
  return HP_OK;
}

hp_status allReduce(Lane &lane, Call &call) {
  Group &group = *call.group;
  int64_t size = group.size(), begin, end;
  reducedRange(call, call.rank, begin, end);
  std::vector<std::vector<char>> messages(size);
  std::vector<const char *> sources(size);
  for (int64_t from = 0; from < size; ++from) {
    sources[from] = call.in + begin * call.elementBytes;
    if (from == call.rank)
      continue;
    hp_status status = take(lane, call, First, from,
                            (end - begin) * call.elementBytes, messages[from]);
    if (status != HP_OK)
      return status;
    sources[from] = messages[from].data() + sizeof(Description);
  }
  reduceBuffers(call.dtype, call.op, sources.data(), size,
                call.out + begin * call.elementBytes, end - begin);
  if (!reducesInParts(call, size))
    return HP_OK;
  for (int64_t to = 0; to < size; ++to)
    if (to != call.rank)
      putMessage(
          *group.members[to],
          keyOf(*lane.owner, call, Second, *lane.owner, *group.members[to]),
          packRange(call, call.out, begin, end));
  for (int64_t from = 0; from < size; ++from) {
    if (from == call.rank)
      continue;
    reducedPart(call.shape[0], from, size, begin, end);
    int64_t bytes = (end - begin) * call.elementBytes;
    hp_status status = take(lane, call, Second, from, bytes, messages[from]);
    if (status != HP_OK)
      return status;
    if (bytes > 0)
      std::memcpy(call.out + begin * call.elementBytes,
                  messages[from].data() + sizeof(Description), bytes);
  }
  return HP_OK;
}

hp_status reduceScatter(Lane &lane, Call &call, int64_t &moved) {
  int64_t size = call.group->size();
  std::vector<std::vector<char>> messages(size);
  std::vector<const char *> sources(size);
  for (int64_t from = 0; from < size; ++from) {
    if (from == call.rank) {
      messages[from] = pack(call, call.rank);
    } else {
      int64_t bytes = packedBytes(call, from, call.rank);
      hp_status status = take(lane, call, First, from, bytes, messages[from]);
      if (status != HP_OK)
        return status;
      moved += bytes;
    }
    sources[from] = messages[from].data() + sizeof(Description);
  }
  reduceBuffers(call.dtype, call.op, sources.data(), size, call.out,
                call.shape[0] * call.shape[1] * call.shape[2]);
  return HP_OK;
}

hp_status moveRows(Lane &lane, Call &call, int64_t &moved) {
  int64_t size = call.group->size(), begin, end;
  clearOutside(call);
  sourcesOf(call, call.rank, size, begin, end);
  for (int64_t from = begin; from < end; ++from) {
    if (from == call.rank) {
      findRows(call, from, from, size,
               [&](const Rows &rows) { copyRows(call.out, call.in, rows); });
      continue;
    }
    std::vector<char> message;
    int64_t bytes = packedBytes(call, from, call.rank);
    hp_status status = take(lane, call, First, from, bytes, message);
    if (status != HP_OK)
      return status;
    unpack(call, from, message.data() + sizeof(Description));
    moved += bytes;
  }
  return HP_OK;
}

/// True if `to` waits for a message of this member.
bool needs(const Call &call, int64_t to) {
  if (call.kind == HP_PERMUTE)
    return std::binary_search(call.targets->begin(), call.targets->end(),
                              static_cast<int>(to));
  int64_t begin, end;
  sourcesOf(call, to, call.group->size(), begin, end);
  return begin <= call.rank && call.rank < end;
}

} // namespace

hp_status startSpread(Lane &lane, Call &call) {
  Group &group = *call.group;
  if (call.ref->run != lane.owner->context->run.number) {
    call.ref->run = lane.owner->context->run.number;
    call.ref->started = 0;
  }
  call.sequence = call.ref->started++;
  for (int64_t to = 0; to < group.size(); ++to) {
    if (to == call.rank || !needs(call, to))
      continue;
    std::vector<char> message;
    if (call.kind == HP_ALL_REDUCE) {
      int64_t begin, end;
      reducedRange(call, to, begin, end);
      message = packRange(call, call.in, begin, end);
    } else {
      message = pack(call, to);
    }
    Device &reader = *group.members[to];
    putMessage(reader, keyOf(*lane.owner, call, First, *lane.owner, reader),
               std::move(message));
  }
  return HP_OK;
}

hp_status finishSpread(Lane &lane, Call &call, int64_t &moved) {
  if (call.kind == HP_ALL_REDUCE) {
    moved = allReduceBytes(call);
    return allReduce(lane, call);
  }
  return call.kind == HP_REDUCE_SCATTER ? reduceScatter(lane, call, moved)
                                        : moveRows(lane, call, moved);
}

} // namespace hyperparallel::runtime
