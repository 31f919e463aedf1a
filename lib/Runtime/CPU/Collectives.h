// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Collectives.h - Group operations through shared memory ------------===//
//
// Contract: all members of a group make the same calls in the same order; what
// differs is found before any data moves and is an error that names both
// calls. Results are the same bits on all members and in all runs.
//
// Algorithm. A group has a ring of slots; the n-th collective of the group
// uses slot n mod RingSize. A slot holds three counters that only grow, so a
// round of the ring needs no reset.
//
//   1. publish: copy the call's description (and its data, if small) into the
//      slot, arrived += 1.
//   2. wait until all have arrived; compare the descriptions.
//   3. pull: copy or reduce what is needed straight from the members' buffers.
//      A large all-reduce first reduces 1/G of the data on each member, waits
//      (middle), and then pulls the other parts.
//   4. departed += 1; unless the data was in the slot, wait until all have
//      departed, since others may still read our buffer.
//
// Cost: bytes moved are those of a bandwidth-optimal algorithm; one wait for
// small data, two otherwise, three for large all-reduces.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_COLLECTIVES_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_COLLECTIVES_H

#include "lib/Runtime/CPU/Counter.h"
#include "lib/Runtime/hp_runtime.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hyperparallel::runtime {

struct Device;
struct Lane;
struct Group;
struct GroupRef;

/// One collective as one member calls it. Shapes are in the meaning of the
/// hp_rt_* call of the same kind.
struct Call {
  hp_collective kind = HP_BARRIER;
  int64_t dtype = -1, op = -1;
  const char *in = nullptr;
  char *out = nullptr;
  int64_t inBytes = 0;
  /// all_gather, reduce_scatter: outer, dim, inner (elements). all_reduce:
  /// count. all_to_all: elements before, first, between, second, after in
  /// `in`, with split before concat if `order` < 0, the same if 0. permute:
  /// none. halo_exchange: outer, in_dim, inner_bytes, global, stride, lo, size.
  int64_t shape[7] = {};
  int64_t elementBytes = 1;
  int order = 0;
  int source = 0; ///< permute: the rank that we receive from
  /// permute over processes: the ranks that receive from us
  const std::vector<int> *targets = nullptr;
  /// send, recv; over processes, the member that is waited for
  int64_t peer = -1, tag = 0;
  int32_t awaitedStream = -1; ///< no call, but the wait for a stream

  const char *label = nullptr;
  GroupRef *ref = nullptr; ///< null for messages
  Group *group = nullptr;
  int rank = 0;
  uint32_t sequence = 0;
  bool small = false;   ///< the data travels in the slot
  bool inPlace = false; ///< in == out, as called
};

constexpr uint32_t RingSize = 64;
constexpr int64_t SmallBytes = 1024;

struct Published {
  Call call;
  alignas(64) char data[SmallBytes];
};

struct Slot {
  Counter arrived, middle, departed;
};

struct Group {
  std::vector<Device *> members; ///< by rank
  /// Where members are in several processes they send each other messages under
  /// this key (SpreadCollectives.cpp), and slots are not used.
  bool isSpread = false;
  std::vector<int64_t> key;
  std::unique_ptr<Slot[]> slots;
  std::unique_ptr<Published[]> published; ///< [slot][rank]

  uint32_t size() const { return static_cast<uint32_t>(members.size()); }
  Slot &slotOf(uint32_t sequence) { return slots[sequence % RingSize]; }
  Published &at(uint32_t sequence, int64_t rank) {
    return published[(sequence % RingSize) * members.size() + rank];
  }
};

/// A group as one of its members sees it.
struct GroupRef {
  std::vector<hp_axis> axes; ///< as called, without axes of size 1
  Group *group;              ///< null if the caller is alone
  int rank;
  uint32_t started = 0;
  uint64_t run = 0;           ///< over processes: in which that was counted
  std::vector<bool> inFlight; ///< by slot
  /// permute over processes: Call::targets by the axes of both sides
  std::map<std::vector<int64_t>, std::vector<int>> targets;
};

/// Messages from one device to another under one key: the run's number, sender,
/// receiver, and a tag; or a group and what is done in it.
struct Channel {
  Counter sent;
  uint32_t received = 0; ///< the receiver's
  std::mutex mutex;      ///< guards messages
  std::deque<std::vector<char>> messages;
};

class Collectives {
public:
  /// Between runs only.
  void forgetGroups();
  /// Those of runs before this one; others may have come early.
  void forgetMessages(uint64_t run);
  /// Lets all sleeping members look whether their run is being stopped.
  void wakeAll();

  Group *group(const std::vector<Device *> &members,
               const std::vector<int64_t> &key);
  std::shared_ptr<Channel> channel(const std::vector<int64_t> &key);
  /// Forgets a channel that nothing comes through any more.
  void dropChannel(const std::vector<int64_t> &key);

private:
  std::mutex mutex;
  std::map<std::vector<int64_t>, std::unique_ptr<Group>> groups;
  std::map<std::vector<int64_t>, std::shared_ptr<Channel>> channels;
};

/// The group of the lane's device along `axes`, which is that lane's alone; the
/// reference stays valid for the run.
hp_status findGroup(Lane &lane, const hp_axis *axes, int64_t numAxes,
                    GroupRef **out);
/// The group along all axes of both lists; `call` gets the rank in it that
/// the device receives from in a permute, and who receives from it.
hp_status findPermuteGroup(Lane &lane, const hp_axis *from, int64_t numFrom,
                           const hp_axis *to, int64_t numTo, GroupRef **out,
                           Call &call);

/// Steps 1, and 2 to 4. `call` must live until it is finished.
hp_status startCollective(Lane &lane, GroupRef &ref, Call &call);
hp_status finishCollective(Lane &lane, Call &call);

/// The same where members are in several processes.
hp_status startSpread(Lane &lane, Call &call);
hp_status finishSpread(Lane &lane, Call &call, int64_t &moved);

hp_status sendMessage(Lane &lane, Call &call);
hp_status receiveMessage(Lane &lane, Call &call);

/// Rows of bytes that one member has in `in` and another needs in `out`: where
/// they begin, and the distance of two rows.
struct Rows {
  int64_t out, outPitch, in, inPitch, width, count;
};
void copyRows(char *out, const char *in, const Rows &rows);
/// The ranks that `to` receives from: [begin, end).
void sourcesOf(const Call &call, int64_t to, int64_t size, int64_t &begin,
               int64_t &end);
/// Calls visit(Rows) for all that goes from one of them to `to`. Both ends
/// find the same rows in the same order; all_reduce has none.
void findRows(const Call &call, int64_t from, int64_t to, int64_t size,
              const std::function<void(const Rows &)> &visit);
/// Fills what a halo_exchange gets from nobody.
void clearOutside(const Call &call);
/// True if an all_reduce reduces a part on each member first.
bool reducesInParts(const Call &call, int64_t size);
/// What an all_reduce in two steps moves, whether it takes them or not.
int64_t allReduceBytes(const Call &call);
/// The error of two members whose calls differ.
hp_status mismatch(const Group &group, int rank, const Call &call,
                   int otherRank, const Call &other);

/// Step 3 for all kinds but all_reduce (DataMovement.cpp). `members` are the
/// published calls by rank; returns the bytes received from others.
int64_t moveData(const Call &call, const Call *const *members, int64_t size);
/// Elements [begin, end) that `rank` reduces in an all_reduce.
void reducedPart(int64_t count, int64_t rank, int64_t size, int64_t &begin,
                 int64_t &end);

/// The two steps of an all_reduce: this member's part, and the others'.
void reducePart(const Call &call, const Call *const *members, int64_t size,
                int64_t begin, int64_t end);
void pullParts(const Call &call, const Call *const *members, int64_t size);

/// True if two members may meet with these calls.
bool sameCall(const Call &a, const Call &b);
/// "all_reduce sum of 8 x f32 'loss'"
std::string describe(const Call &call);
/// "{0, 2}"
std::string describeMembers(const Group &group);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_COLLECTIVES_H
