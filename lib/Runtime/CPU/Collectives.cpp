// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/Collectives.h"
#include "lib/Runtime/CPU/Device.h"
#include "lib/Runtime/CPU/Reduce.h"
#include "lib/Runtime/CPU/SideStream.h"
#include "lib/Runtime/MeshAxes.h"
#include "lib/Runtime/Status.h"
#include "lib/Runtime/StreamNumbers.h"

#include <algorithm>
#include <cstring>

namespace hyperparallel::runtime {

/// Up to here every member reduces everything itself, which saves a wait.
static constexpr int64_t OneStepReduceBytes = 128 << 10;

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

static const char *kindName(hp_collective kind) {
  static const char *const names[] = {
      "all_gather",    "all_reduce", "reduce_scatter", "all_to_all", "permute",
      "halo_exchange", "broadcast",  "barrier",        "send",       "recv"};
  return names[kind];
}

std::string describe(const Call &call) {
  if (call.awaitedStream >= 0)
    return "the wait for the stream " + streamName(call.awaitedStream);
  std::string text = kindName(call.kind);
  if (call.op >= 0)
    text += std::string(" ") + reductionName(call.op);
  text += " of ";
  if (call.dtype >= 0)
    text += std::to_string(call.inBytes / dtypeBytes(call.dtype)) + " x " +
            dtypeName(call.dtype);
  else
    text += std::to_string(call.inBytes) + " bytes";
  if (call.kind == HP_RECV)
    text += " from device " + std::to_string(call.peer) + " with tag " +
            std::to_string(call.tag);
  if (call.label)
    text += std::string(" '") + call.label + "'";
  return text;
}

std::string describeMembers(const Group &group) {
  std::string text = "{";
  for (const Device *member : group.members)
    text += (text.size() > 1 ? ", " : "") + std::to_string(member->ordinal);
  return text + "}";
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

void Collectives::forgetGroups() {
  std::lock_guard<std::mutex> lock(mutex);
  groups.clear();
}

void Collectives::forgetMessages(uint64_t run) {
  std::lock_guard<std::mutex> lock(mutex);
  channels.erase(channels.begin(),
                 channels.lower_bound({static_cast<int64_t>(run)}));
}

void Collectives::wakeAll() {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &entry : groups)
    for (uint32_t i = 0; entry.second->slots && i < RingSize; ++i) {
      entry.second->slots[i].arrived.wakeAll();
      entry.second->slots[i].middle.wakeAll();
      entry.second->slots[i].departed.wakeAll();
    }
  for (auto &entry : channels)
    entry.second->sent.wakeAll();
}

Group *Collectives::group(const std::vector<Device *> &members,
                          const std::vector<int64_t> &key) {
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Group> &group = groups[key];
  if (!group) {
    group = std::make_unique<Group>();
    group->members = members;
    group->key = key;
    group->isSpread = std::any_of(members.begin(), members.end(),
                                  [](Device *it) { return isRemote(*it); });
    if (group->isSpread)
      return group.get();
    group->slots.reset(new Slot[RingSize]);
    group->published.reset(new Published[RingSize * members.size()]);
  }
  return group.get();
}

std::shared_ptr<Channel> Collectives::channel(const std::vector<int64_t> &key) {
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Channel> &channel = channels[key];
  if (!channel)
    channel = std::make_shared<Channel>();
  return channel;
}

void Collectives::dropChannel(const std::vector<int64_t> &key) {
  std::lock_guard<std::mutex> lock(mutex);
  channels.erase(key);
}

/// Replaces the coordinates along `axes` by the digits of `index`.
static int64_t withIndex(int64_t id, const std::vector<hp_axis> &axes,
                         int64_t index) {
  return withIndexAlong(id, axes.data(), static_cast<int64_t>(axes.size()),
                        index);
}

static int64_t indexOf(int64_t id, const std::vector<hp_axis> &axes) {
  return indexAlong(id, axes.data(), static_cast<int64_t>(axes.size()));
}

static std::vector<hp_axis> withoutTrivial(const hp_axis *axes,
                                           int64_t numAxes) {
  std::vector<hp_axis> kept;
  for (int64_t i = 0; i < numAxes; ++i)
    if (axes[i].size != 1)
      kept.push_back(axes[i]);
  return kept;
}

static Device *deviceAt(Context &context, int64_t group, int64_t rank) {
  for (Device *device : context.run.places)
    if (device->launch.group == group && device->launch.rank == rank)
      return device;
  return nullptr; // not reached: the launches of a group are complete
}

static GroupRef *makeGroup(Lane &lane, std::vector<hp_axis> axes) {
  Device &device = *lane.owner;
  int64_t size = 1, id = device.launch.rank;
  for (const hp_axis &axis : axes)
    size *= axis.size;
  GroupRef ref;
  ref.rank = static_cast<int>(indexOf(id, axes));
  ref.group = nullptr;
  if (size > 1) {
    std::vector<Device *> members;
    for (int64_t rank = 0; rank < size; ++rank)
      members.push_back(deviceAt(*device.context, device.launch.group,
                                 withIndex(id, axes, rank)));
    std::vector<int64_t> key = {device.launch.group, lane.stream,
                                withIndex(id, axes, 0)};
    for (const hp_axis &axis : axes)
      key.insert(key.end(), {axis.stride, axis.size});
    ref.group = device.context->collectives.group(members, key);
    ref.inFlight.resize(RingSize);
  }
  ref.axes = std::move(axes);
  lane.groups.push_back(std::move(ref));
  return &lane.groups.back();
}

static bool sameAxes(const std::vector<hp_axis> &kept, const hp_axis *axes,
                     int64_t numAxes) {
  size_t i = 0;
  for (int64_t j = 0; j < numAxes; ++j) {
    if (axes[j].size == 1 && axes[j].stride > 0)
      continue;
    if (i == kept.size() || kept[i].stride != axes[j].stride ||
        kept[i].size != axes[j].size)
      return false;
    ++i;
  }
  return i == kept.size();
}

hp_status findGroup(Lane &lane, const hp_axis *axes, int64_t numAxes,
                    GroupRef **out) {
  for (GroupRef &ref : lane.groups)
    if (sameAxes(ref.axes, axes, numAxes)) {
      *out = &ref;
      return HP_OK;
    }
  hp_status status = checkAxes(axes, numAxes, lane.owner->meshSize);
  if (status == HP_OK)
    *out = makeGroup(lane, withoutTrivial(axes, numAxes));
  return status;
}

/// The smallest set of disjoint axes that spans both lists: all their cutting
/// points, in order, with what lies between two neighbours of one axis.
static bool spanningAxes(const std::vector<hp_axis> &from,
                         const std::vector<hp_axis> &to,
                         std::vector<hp_axis> &out) {
  std::vector<hp_axis> all = from;
  all.insert(all.end(), to.begin(), to.end());
  std::vector<int64_t> cuts;
  for (const hp_axis &axis : all)
    cuts.insert(cuts.end(), {axis.stride, axis.stride * axis.size});
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (size_t i = cuts.size(); i-- > 1;) {
    int64_t low = cuts[i - 1], high = cuts[i];
    bool covered = false;
    for (const hp_axis &axis : all)
      covered |= axis.stride <= low && high <= axis.stride * axis.size;
    if (!covered)
      continue;
    if (high % low != 0)
      return false;
    out.push_back({low, high / low});
  }
  return true;
}

hp_status findPermuteGroup(Lane &lane, const hp_axis *from, int64_t numFrom,
                           const hp_axis *to, int64_t numTo, GroupRef **out,
                           Call &call) {
  Device &device = *lane.owner;
  hp_status status = checkAxes(from, numFrom, device.meshSize);
  if (status == HP_OK)
    status = checkAxes(to, numTo, device.meshSize);
  if (status != HP_OK)
    return status;
  std::vector<hp_axis> fromAxes = withoutTrivial(from, numFrom);
  std::vector<hp_axis> toAxes = withoutTrivial(to, numTo);
  int64_t fromSize = 1, toSize = 1;
  for (const hp_axis &axis : fromAxes)
    fromSize *= axis.size;
  for (const hp_axis &axis : toAxes)
    toSize *= axis.size;
  std::vector<hp_axis> spanning;
  if (fromSize != toSize || !spanningAxes(fromAxes, toAxes, spanning))
    return fail(HP_INVALID_ARGUMENT,
                "permute: axes %s and %s do not span the same blocks",
                describeAxes(from, numFrom).c_str(),
                describeAxes(to, numTo).c_str());
  status = findGroup(lane, spanning.data(),
                     static_cast<int64_t>(spanning.size()), out);
  if (status != HP_OK)
    return status;
  auto sourceOf = [&](int64_t id) {
    int64_t sender = withIndex(id, fromAxes, indexOf(id, toAxes));
    return static_cast<int>(indexOf(sender, (*out)->axes));
  };
  GroupRef &ref = **out;
  call.source = sourceOf(device.launch.rank);
  if (!ref.group || !ref.group->isSpread)
    return HP_OK;
  std::vector<int64_t> key = {numFrom};
  for (const std::vector<hp_axis> *axes : {&fromAxes, &toAxes})
    for (const hp_axis &axis : *axes)
      key.insert(key.end(), {axis.stride, axis.size});
  auto [found, isNew] = ref.targets.try_emplace(key);
  if (isNew)
    for (uint32_t rank = 0; rank < ref.group->size(); ++rank)
      if (sourceOf(ref.group->members[rank]->launch.rank) == ref.rank)
        found->second.push_back(static_cast<int>(rank));
  call.targets = &found->second;
  return HP_OK;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

bool sameCall(const Call &a, const Call &b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op &&
         a.inBytes == b.inBytes && a.elementBytes == b.elementBytes &&
         a.order == b.order && !std::memcmp(a.shape, b.shape, sizeof(a.shape));
}

static std::string describeShape(const Call &call) {
  std::string text = describe(call) + " (shape";
  for (int64_t extent : call.shape)
    text += " " + std::to_string(extent);
  return text + ")";
}

hp_status mismatch(const Group &group, int rank, const Call &call,
                   int otherRank, const Call &other) {
  std::string a = describe(call), b = describe(other);
  if (a == b) {
    a = describeShape(call);
    b = describeShape(other);
  }
  return failWith(HP_MISMATCH,
                  "collectives do not match in the group of devices " +
                      describeMembers(group) + ": device " +
                      std::to_string(group.members[rank]->ordinal) + " calls " +
                      a + ", but device " +
                      std::to_string(group.members[otherRank]->ordinal) +
                      " calls " + b);
}

hp_status startCollective(Lane &lane, GroupRef &ref, Call &call) {
  call.ref = &ref;
  call.group = ref.group;
  call.rank = ref.rank;
  if (!ref.group)
    return HP_OK;
  Group &group = *ref.group;
  call.inPlace = call.in == call.out;
  if (group.isSpread)
    return startSpread(lane, call);
  call.sequence = ref.started;
  uint32_t slotIndex = call.sequence % RingSize;
  if (ref.inFlight[slotIndex])
    return fail(HP_INVALID_ARGUMENT,
                "more than %u collectives were started in the group of devices "
                "%s without waiting for the first, %s",
                RingSize, describeMembers(group).c_str(),
                describe(group.at(call.sequence, call.rank).call).c_str());
  Slot &slot = group.slotOf(call.sequence);
  uint32_t round = call.sequence / RingSize;
  hp_status status = waitFor(lane, slot.departed, round * group.size(), call);
  if (status != HP_OK)
    return status;
  ++ref.started;
  ref.inFlight[slotIndex] = true;
  Published &mine = group.at(call.sequence, call.rank);
  call.small = call.inBytes <= SmallBytes;
  mine.call = call;
  if (call.small && call.inBytes > 0) {
    std::memcpy(mine.data, call.in, static_cast<size_t>(call.inBytes));
    mine.call.in = mine.data;
  }
  slot.arrived.add();
  return HP_OK;
}

/// True if every member reduces a part and then pulls the others' parts. All
/// members decide alike: they look at the same published calls.
static bool inTwoSteps(const Call *const *members, int64_t size) {
  bool inPlace = false;
  for (int64_t rank = 0; rank < size; ++rank)
    inPlace |= members[rank]->inPlace;
  return !members[0]->small &&
         (inPlace || members[0]->inBytes * size > OneStepReduceBytes);
}

void reducePart(const Call &call, const Call *const *members, int64_t size,
                int64_t begin, int64_t end) {
  std::vector<const char *> sources(size);
  for (int64_t rank = 0; rank < size; ++rank)
    sources[rank] = members[rank]->in + begin * call.elementBytes;
  reduceBuffers(call.dtype, call.op, sources.data(), size,
                call.out + begin * call.elementBytes, end - begin);
}

void pullParts(const Call &call, const Call *const *members, int64_t size) {
  for (int64_t rank = 0; rank < size; ++rank) {
    int64_t begin, end;
    reducedPart(call.shape[0], rank, size, begin, end);
    if (rank != call.rank && begin < end)
      std::memcpy(call.out + begin * call.elementBytes,
                  members[rank]->out + begin * call.elementBytes,
                  static_cast<size_t>((end - begin) * call.elementBytes));
  }
}

bool reducesInParts(const Call &call, int64_t size) {
  return call.inBytes > SmallBytes && call.inBytes * size > OneStepReduceBytes;
}

int64_t allReduceBytes(const Call &call) {
  int64_t size = call.group->size(), count = call.shape[0], begin, end;
  reducedPart(count, call.rank, size, begin, end);
  return ((size - 1) * (end - begin) + count - (end - begin)) *
         call.elementBytes;
}

static hp_status allReduceInTwoSteps(Lane &lane, Call &call,
                                     const Call *const *members) {
  int64_t size = call.group->size(), count = call.shape[0], begin, end;
  reducedPart(count, call.rank, size, begin, end);
  reducePart(call, members, size, begin, end);
  Slot &slot = call.group->slotOf(call.sequence);
  slot.middle.add();
  hp_status status =
      waitFor(lane, slot.middle,
              (call.sequence / RingSize + 1) * call.group->size(), call);
  if (status == HP_OK)
    pullParts(call, members, size);
  return status;
}

static hp_status finishInGroup(Lane &lane, Call &call, int64_t &moved) {
  Group &group = *call.group;
  Slot &slot = group.slotOf(call.sequence);
  uint32_t target = (call.sequence / RingSize + 1) * group.size();
  hp_status status = waitFor(lane, slot.arrived, target, call);
  if (status != HP_OK)
    return status;
  std::vector<const Call *> members(group.size());
  for (uint32_t rank = 0; rank < group.size(); ++rank)
    members[rank] = &group.at(call.sequence, rank).call;
  for (uint32_t rank = 1; rank < group.size(); ++rank)
    if (!sameCall(*members[0], *members[rank]))
      return mismatch(group, 0, *members[0], static_cast<int>(rank),
                      *members[rank]);
  bool meets =
      call.kind == HP_ALL_REDUCE && inTwoSteps(members.data(), group.size());
  if (meets)
    status = allReduceInTwoSteps(lane, call, members.data());
  else if (call.kind == HP_ALL_REDUCE)
    reducePart(call, members.data(), group.size(), 0, call.shape[0]);
  else
    moved = moveData(call, members.data(), group.size());
  if (status != HP_OK)
    return status;
  if (call.kind == HP_ALL_REDUCE)
    moved = allReduceBytes(call);
  // Every counter of a slot grows once in every round, whoever waits for it.
  if (!meets)
    slot.middle.add();
  slot.departed.add();
  call.ref->inFlight[call.sequence % RingSize] = false;
  return call.small ? HP_OK : waitFor(lane, slot.departed, target, call);
}

/// A group of one: nothing to wait for.
static void finishAlone(Call &call) {
  const Call *self = &call;
  if (call.kind == HP_ALL_REDUCE)
    reduceBuffers(call.dtype, call.op, &call.in, 1, call.out, call.shape[0]);
  else
    moveData(call, &self, 1);
}

hp_status finishCollective(Lane &lane, Call &call) {
  if (!call.group) {
    finishAlone(call);
    return HP_OK;
  }
  int64_t moved = 0, begin = nowNs();
  hp_status status = call.group->isSpread ? finishSpread(lane, call, moved)
                                          : finishInGroup(lane, call, moved);
  if (status != HP_OK)
    return status;
  ++lane.stats.collectives[call.kind];
  lane.stats.moved[call.kind] += moved;
  if (lane.owner->context->trace.enabled() && lane.lane)
    lane.lane->spans.push_back(
        {"collective", describe(call), begin, nowNs(), moved});
  return HP_OK;
}

} // namespace hyperparallel::runtime
