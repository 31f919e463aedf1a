//===- Deadlock.cpp - symbolic execution of sends and receives ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Each process is a list of actions; nothing in it depends on who comes first,
// for a receive says whom and what it wants. So what can happen never stops
// being possible when something else happens first, and all runs do the same
// (as in a Kahn network): one run stands for all. It is done here without
// data, as far as it goes.
//
//   1. Every process goes on until it has to wait.
//   2. What it does lets others go on; they are looked at again.
//   3. If somebody is left, who waits for whom is a graph in which each waiting
//      process points at one other: a way along it ends in a circle, or at a
//      process that has ended.
//
// Messages between two processes under one tag are matched in order.
// Cost: O(actions), by hashing; a circle is looked at once for each member.
//===----------------------------------------------------------------------===//
#include "lib/Scheduler/Deadlock.h"

#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace mlir::hyperparallel::scheduler {
namespace {

using What = Action::What;

class Execution {
public:
  Execution(const Processes &processes, Semantics semantics)
      : all(processes), isRendezvous(semantics == Semantics::Rendezvous),
        at(processes.actions.size()), here(processes.circles.size()),
        isHere(processes.actions.size()) {}

  std::string run() {
    for (uint32_t process = 0; process < at.size(); ++process)
      toLookAt.push_back(process);
    while (!toLookAt.empty() && fault.empty()) {
      uint32_t process = toLookAt.front();
      toLookAt.pop_front();
      while (!hasEnded(process) && fault.empty() && goOn(process))
        ;
    }
    if (!fault.empty())
      return fault;
    for (uint32_t process = 0; process < at.size(); ++process)
      if (!hasEnded(process))
        return describeWait(process);
    return findLeftMessage();
  }

private:
  struct Channel {
    std::deque<const Action *> messages; // sent and not received
    int64_t waiting = -1;                // the receiver, if it waits here
  };
  using Key = std::tuple<uint32_t, uint32_t, int64_t>; // from, to, tag
  struct Hash {
    size_t operator()(const Key &key) const {
      auto [from, to, tag] = key;
      uint64_t h = (uint64_t(from) << 32 | to) * 0x9E3779B97F4A7C15ull;
      return (h ^ uint64_t(tag)) * 0xC2B2AE3D27D4EB4Full >> 7;
    }
  };

  bool hasEnded(uint32_t process) const {
    return at[process] == all.actions[process].size();
  }
  const Action &now(uint32_t process) const {
    return all.actions[process][at[process]];
  }

  /// Performs the process's next action, if it can happen.
  bool goOn(uint32_t process) {
    const Action &action = now(process);
    if (action.what == What::Meet)
      return meet(process, action.peer);
    if (isRendezvous)
      return meetPeer(process, action);
    return action.what == What::Send ? put(process, action)
                                     : take(process, action);
  }

  bool meetPeer(uint32_t process, const Action &action) {
    if (action.peer == process || hasEnded(action.peer))
      return false;
    const Action &other = now(action.peer);
    What wanted = action.what == What::Send ? What::Receive : What::Send;
    if (other.what != wanted || other.peer != process ||
        other.tag != action.tag)
      return false;
    bool isSender = action.what == What::Send;
    compare(isSender ? process : action.peer, isSender ? action : other,
            isSender ? action.peer : process, isSender ? other : action);
    ++at[process];
    ++at[action.peer];
    toLookAt.push_back(action.peer);
    return true;
  }

  bool put(uint32_t process, const Action &action) {
    Channel &channel = channels[{process, action.peer, action.tag}];
    channel.messages.push_back(&action);
    if (channel.waiting >= 0)
      toLookAt.push_back(static_cast<uint32_t>(channel.waiting));
    channel.waiting = -1;
    ++at[process];
    return true;
  }

  bool take(uint32_t process, const Action &action) {
    Channel &channel = channels[{action.peer, process, action.tag}];
    if (channel.messages.empty()) {
      channel.waiting = process;
      return false;
    }
    compare(action.peer, *channel.messages.front(), process, action);
    channel.messages.pop_front();
    ++at[process];
    return true;
  }

  bool meet(uint32_t process, uint32_t circle) {
    if (!isHere[process]) {
      isHere[process] = true;
      ++here[circle];
    }
    const std::vector<uint32_t> &members = all.circles[circle];
    if (here[circle] < members.size())
      return false;
    here[circle] = 0;
    const Action &action = now(process);
    for (uint32_t member : members) {
      const Action &other = now(member);
      if (fault.empty() &&
          (other.tag != action.tag || (other.bytes >= 0 && action.bytes >= 0 &&
                                       other.bytes != action.bytes)))
        fault = "expected all members of a group to do the same, but " +
                describe(process, action) + " and " + describe(member, other);
      isHere[member] = false;
      ++at[member];
      if (member != process)
        toLookAt.push_back(member);
    }
    return true;
  }

  void compare(uint32_t sender, const Action &send, uint32_t receiver,
               const Action &receive) {
    if (fault.empty() && send.bytes >= 0 && receive.bytes >= 0 &&
        send.bytes != receive.bytes)
      fault = "expected both ends of a transfer to have the same size, but " +
              describe(sender, send) + ", and " + describe(receiver, receive);
  }

  std::string quote(const Action &action) const {
    return (action.label.empty() ? "" : " '" + action.label + "'") + " (tag " +
           std::to_string(action.tag) +
           (action.bytes >= 0 ? ", " + std::to_string(action.bytes) + " bytes"
                              : "") +
           ")";
  }
  std::string nameOf(uint32_t process) const {
    return "'" + all.names[process] + "'";
  }
  std::string describe(uint32_t process, const Action &action) const {
    switch (action.what) {
    case What::Send:
      return nameOf(process) + " sends" + quote(action) + " to " +
             nameOf(action.peer);
    case What::Receive:
      return nameOf(process) + " receives" + quote(action) + " from " +
             nameOf(action.peer);
    case What::Meet:
      return nameOf(process) + " is at the collective" + quote(action);
    }
    return "";
  }

  /// The process that a waiting process waits for.
  uint32_t awaited(uint32_t process) const {
    const Action &action = now(process);
    if (action.what != What::Meet)
      return action.peer;
    for (uint32_t member : all.circles[action.peer])
      if (!isHere[member] || now(member).what != What::Meet ||
          now(member).peer != action.peer)
        return member;
    return process;
  }

  std::string describeWait(uint32_t process) const {
    std::vector<char> isSeen(at.size());
    for (; !hasEnded(process) && !isSeen[process]; process = awaited(process))
      isSeen[process] = true;
    if (hasEnded(process)) {
      // Go again, to find who waits for the one that has ended.
      for (uint32_t other = 0; other < at.size(); ++other)
        if (!hasEnded(other) && awaited(other) == process)
          return "expected every wait to end, but " +
                 describe(other, now(other)) + ", and " + nameOf(process) +
                 " comes to its end without it";
    }
    std::string text = "expected every wait to end, but each waits for the "
                       "next: ";
    constexpr int most = 8;
    uint32_t next = process;
    int count = 0;
    do {
      text += (count ? "; " : "") + describe(next, now(next));
      next = awaited(next);
    } while (next != process && ++count < most);
    return text + (next == process ? "; which is a circle" : "; and so on");
  }

  std::string findLeftMessage() const {
    // In the order of channels, so that the answer is always the same.
    std::map<Key, const Action *> left;
    for (const auto &[key, channel] : channels)
      if (!channel.messages.empty())
        left[key] = channel.messages.front();
    if (left.empty())
      return "";
    return "expected every message to be received, but " +
           describe(std::get<0>(left.begin()->first), *left.begin()->second) +
           ", which never receives it";
  }

  const Processes &all;
  bool isRendezvous;
  std::vector<size_t> at;
  std::vector<size_t> here; ///< by circle: members that have come
  std::vector<char> isHere; ///< by process: counted in its circle
  std::deque<uint32_t> toLookAt;
  std::unordered_map<Key, Channel, Hash> channels;
  std::string fault;
};

/// What would make the execution itself go wrong.
std::string findUnknown(const Processes &processes) {
  size_t count = processes.actions.size();
  if (processes.names.size() != count)
    return "expected a name for each process";
  std::set<std::pair<uint32_t, uint32_t>> members; // process, circle
  for (uint32_t circle = 0; circle < processes.circles.size(); ++circle)
    for (uint32_t member : processes.circles[circle])
      if (member >= count || !members.insert({member, circle}).second)
        return "expected different members of groups below " +
               std::to_string(count) + " but got " + std::to_string(member);
  for (uint32_t process = 0; process < count; ++process)
    for (const Action &action : processes.actions[process]) {
      bool isMeet = action.what == What::Meet;
      size_t limit = isMeet ? processes.circles.size() : count;
      if (action.peer >= limit)
        return "expected '" + processes.names[process] + "' to name a " +
               (isMeet ? "group" : "process") + " below " +
               std::to_string(limit) + " but got " +
               std::to_string(action.peer);
      if (isMeet && !members.count({process, action.peer}))
        return "expected '" + processes.names[process] +
               "' to meet with groups that it is in but got group " +
               std::to_string(action.peer);
    }
  return "";
}

} // namespace

std::string findDeadlock(const Processes &processes, Semantics semantics) {
  std::string unknown = findUnknown(processes);
  return unknown.empty() ? Execution(processes, semantics).run() : unknown;
}

} // namespace mlir::hyperparallel::scheduler
