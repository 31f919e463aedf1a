// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Watchdog.cpp - Finds devices that wait forever --------------------===//
//
// A run is stuck for good when every device has ended or waits, one at least
// waits, and what each of them waits for has not happened: nobody is left who
// could make it happen. No time limit is involved, so slow programs are never
// mistaken for stuck ones.
//
// Devices change state while the watchdog looks, so it looks twice: if no
// device made progress between two looks that both say "stuck", then they were
// all stuck at the same moment in between.
//
// Where devices are spread over processes, this is one process's part of the
// answer; the transport puts them together.
//
// A loop without end in a program is another matter: it waits for nobody, and
// nothing proves that it does not end. Where that was asked for (stuck_ms), a
// device that is in its program for so long without a call of the runtime is
// taken for stuck. Looks that come late (the process was stopped, the machine
// is busy) count as one period. If a run failed, a device that does not come
// back is not waited for longer than ReturnMs.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/SideStream.h"
#include "lib/Runtime/StreamNumbers.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

namespace hyperparallel::runtime {

/// The sum of all progress if every device, and every stream with something to
/// do, is stuck or done, else 0.
static uint64_t stuckProgress(Run &run) {
  uint64_t sum = 1;
  bool anyWaits = false, anyWorks = false;
  for (Device *device : run.devices)
    forEachLane(*device, [&](Lane &lane) {
      sum += lane.progress.load();
      Activity activity = lane.activity.load();
      if (activity == Activity::Done || activity == Activity::Idle)
        return;
      if (activity != Activity::Waiting) {
        anyWorks = true;
        return;
      }
      std::lock_guard<std::mutex> lock(lane.waitMutex);
      if (!lane.waitingFor || lane.waitingFor->reached(lane.waitTarget))
        anyWorks = true;
      anyWaits = true;
    });
  return anyWaits && !anyWorks ? sum : 0;
}

/// The call that the lane waits in; false if it does not.
static bool getWaiting(Lane &lane, Call &call) {
  if (lane.activity.load() != Activity::Waiting)
    return false;
  std::lock_guard<std::mutex> lock(lane.waitMutex);
  if (!lane.waitingIn)
    return false;
  call = *lane.waitingIn;
  return true;
}

/// Members of the waiting call's group that have not published it.
static std::string absentMembers(const Call &call) {
  std::string text;
  if (!call.group || call.group->isSpread)
    return text;
  for (Device *member : call.group->members) {
    bool present = false;
    forEachLane(*member, [&](Lane &lane) {
      Call other;
      present |= getWaiting(lane, other) && other.group == call.group &&
                 other.sequence == call.sequence;
    });
    if (!present)
      text += (text.empty() ? "" : ", ") + std::to_string(member->ordinal);
  }
  return text;
}

static std::string describeWaiting(const Call &call) {
  std::string text = "waits in " + describe(call);
  std::string absent = absentMembers(call);
  if (call.group)
    text += " in the group of devices " + describeMembers(*call.group);
  if (call.group && call.group->isSpread)
    text += ", for device " + std::to_string(call.peer);
  else if (!absent.empty())
    text += ", not reached by " + absent;
  return text;
}

std::string describeDevices(Run &run) {
  std::string text;
  for (Device *device : run.devices) {
    std::string name = "\n  device " + std::to_string(device->ordinal) + " ";
    std::vector<std::pair<int32_t, Call>> waiting;
    bool isWaiting = device->activity.load() == Activity::Waiting;
    forEachLane(*device, [&](Lane &lane) {
      Call call;
      if (getWaiting(lane, call))
        waiting.push_back({lane.stream, call});
    });
    if (!isWaiting)
      text += name + (device->activity.load() == Activity::Done
                          ? "has ended its program"
                          : "is at work");
    for (auto &[stream, call] : waiting)
      text += name +
              (stream ? "on the stream " + streamName(stream) + " " : "") +
              describeWaiting(call);
  }
  return text;
}

namespace {
/// How long devices have been in their programs without a call.
class Loops {
public:
  /// One more period has passed.
  void look(const Run &run, int64_t periodMs);
  /// The device that has been for `ms`, or null.
  Device *longerThan(const Run &run, int64_t ms) const;
  void clear() { seen.clear(); }

private:
  struct Seen {
    uint64_t calls = 0;
    int64_t ms = 0;
  };
  std::map<const Device *, Seen> seen;
};
} // namespace

/// Once a run has failed.
static constexpr int64_t ReturnMs = 3000;

void Loops::look(const Run &run, int64_t periodMs) {
  for (const Device *device : run.devices) {
    Seen &last = seen[device];
    uint64_t calls = device->numCalls.load(std::memory_order_relaxed);
    bool inProgram = device->activity == Activity::Running &&
                     !device->isMultiplying && calls == last.calls;
    last = {calls, inProgram ? last.ms + periodMs : 0};
  }
}

Device *Loops::longerThan(const Run &run, int64_t ms) const {
  for (Device *device : run.devices)
    if (auto found = seen.find(device);
        found != seen.end() && found->second.ms >= ms)
      return device;
  return nullptr;
}

static void failStuck(Context &context, Device &device) {
  const char *call = device.lastCall.load();
  char text[160];
  std::snprintf(text, sizeof(text),
                "it has been in its program for %g s without a call of the "
                "runtime, after %s; a loop of it may have no end",
                static_cast<double>(context.stuckMs) / 1000,
                call ? call : "it began");
  recordFailure(
      device, failWith(HP_PROGRAM_ERROR, text + describeDevices(context.run)));
}

void watchdogMain(Context &context) {
  uint64_t before = 0;
  Loops loops;
  std::unique_lock<std::mutex> lock(context.runMutex);
  while (!context.quitting) {
    if (!context.running) {
      before = 0;
      loops.clear();
      context.runChanged.wait(lock);
      continue;
    }
    context.runChanged.wait_for(lock,
                                std::chrono::milliseconds(context.watchdogMs));
    if (!context.running)
      continue;
    if (context.stuckMs > 0) {
      loops.look(context.run, context.watchdogMs);
      if (!context.run.stopping)
        if (Device *device = loops.longerThan(context.run, context.stuckMs))
          failStuck(context, *device);
      if (context.run.stopping &&
          loops.longerThan(context.run, std::min(ReturnMs, context.stuckMs))) {
        context.abandoned = true;
        context.runChanged.notify_all();
      }
    }
    if (context.run.stopping)
      continue;
    uint64_t now = stuckProgress(context.run);
    bool isStuck = now != 0 && now == before;
    before = now;
    if (Transport *transport = context.transport.get()) {
      // Messages of other processes may come: all of them have to be stuck.
      transport->setStuck(isStuck ? now + context.run.number : 0);
      isStuck = transport->isDeadlocked();
    }
    if (isStuck)
      recordFailure(
          *context.run.devices.front(),
          failWith(HP_DEADLOCK, "deadlock: the devices wait for each other "
                                "forever" +
                                    describeDevices(context.run)));
  }
}

} // namespace hyperparallel::runtime
