// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Run.cpp - Starts, ends and stops runs of compiled programs --------===//

#include "lib/Runtime/ArgumentChecks.h"
#include "lib/Runtime/CPU/Device.h"
#include "lib/Runtime/CPU/SideStream.h"
#include "lib/Runtime/Status.h"

#include <algorithm>
#include <chrono>

namespace hyperparallel::runtime {

/// A sleeping device looks up this often whether the run is being stopped; it
/// is woken when that happens, so this only covers the moment before sleep.
static constexpr int64_t SleepNs = 10000000;

ThreadState &threadState() {
  static thread_local ThreadState state;
  return state;
}

//===----------------------------------------------------------------------===//
// Failures and waiting
//===----------------------------------------------------------------------===//

void recordFailure(Device &device, hp_status status) {
  Run &run = device.context->run;
  {
    std::lock_guard<std::mutex> lock(run.mutex);
    run.failures.push_back({device.ordinal, status, lastError()});
  }
  run.stopping = true;
  device.context->collectives.wakeAll();
  if (device.context->transport && status != HP_CANCELLED)
    device.context->transport->tellFailure(
        "device " + std::to_string(device.ordinal) + ": " + lastError());
}

hp_status checkStopping(Lane &lane) {
  if (!lane.owner->context->run.stopping.load(std::memory_order_relaxed))
    return HP_OK;
  return fail(HP_CANCELLED, "the run was stopped");
}

hp_status waitFor(Lane &lane, Counter &counter, uint32_t target,
                  const Call &call) {
  if (counter.reached(target))
    return HP_OK;
  Run &run = lane.owner->context->run;
  int64_t begin = nowNs();
  if (!counter.spin(target, run.spins)) {
    {
      std::lock_guard<std::mutex> lock(lane.waitMutex);
      lane.waitingIn = &call;
      lane.waitingFor = &counter;
      lane.waitTarget = target;
    }
    lane.activity = Activity::Waiting;
    for (uint32_t seen = counter.load();
         static_cast<int32_t>(seen - target) < 0 && !run.stopping;
         seen = counter.load())
      counter.sleep(seen, SleepNs);
    lane.activity = Activity::Running;
    ++lane.progress;
    std::lock_guard<std::mutex> lock(lane.waitMutex);
    lane.waitingIn = nullptr;
    lane.waitingFor = nullptr;
  }
  lane.stats.wait_ns += nowNs() - begin;
  return counter.reached(target) ? HP_OK : checkStopping(lane);
}

//===----------------------------------------------------------------------===//
// The device's thread
//===----------------------------------------------------------------------===//

/// Runs the entry; returns here when it ends or when it is left by a failure.
static void enterProgram(Device &device) {
  std::jmp_buf exit;
  ThreadState &state = threadState();
  state = {&device, &exit, false, nullptr};
  if (_setjmp(exit) == 0)
    device.entry(device.launch.args, device.launch.results);
  threadState() = {};
  joinStreams(device);
}

static void runLaunch(Device &device) {
  int64_t begin = nowNs();
  device.pool.beginRun();
  hp_status status = device.pool.reserve(device.launch.resident);
  device.ownsReservation = status == HP_OK;
  if (status != HP_OK)
    recordFailure(device, status);
  else if (checkStopping(device) == HP_OK)
    enterProgram(device);
  device.stats.wall_ns = nowNs() - begin;
  Trace &trace = device.context->trace;
  if (trace.enabled() && device.lane)
    device.lane->spans.push_back(
        {"program", device.launch.entry, begin, nowNs(), -1});
}

/// The books of a run, done once all devices have left their programs: only
/// then may memory be reused that others may have been reading.
static void closeBooks(Context &context) {
  Run &run = context.run;
  run.end = nowNs();
  context.keepsGroups = true;
  for (Device *device : run.devices) {
    device->transfers.drain();
    hp_device_stats &stats = device->stats;
    for (std::unique_ptr<SideStream> &stream : device->beside)
      for (int kind = 0; kind < HP_COLLECTIVE_COUNT; ++kind) {
        stats.collectives[kind] += stream->stats.collectives[kind];
        stats.moved[kind] += stream->stats.moved[kind];
      }
    for (int tier = 0; tier < HP_TIER_COUNT; ++tier)
      stats.peak[tier] = device->pool.peak(tier);
    stats.allocations = device->pool.allocationsOfRun();
    device->pool.endRun(stats.leaked);
    if (device->ownsReservation)
      device->pool.unreserve(device->launch.resident);
    // Groups may serve the next run if all members are equally far in them.
    context.keepsGroups &= device->futures.empty() && !run.stopping;
    for (Call *future : device->futures)
      delete future;
    device->futures.clear();
    device->openRanges.clear();
    stats.status = run.stopping ? HP_CANCELLED : HP_OK;
    for (const Failure &failure : run.failures)
      if (failure.device == device->ordinal && failure.status != HP_CANCELLED)
        stats.status = failure.status;
    device->activity = Activity::Idle;
  }
}

void deviceMain(Device &device) {
  Context &context = *device.context;
  uint32_t seen = 0;
  for (;;) {
    for (uint32_t target = seen + 1; !device.jobs.reached(target);)
      if (!device.jobs.spin(target, 200))
        device.jobs.sleep(seen, int64_t(1000000000));
    seen = device.jobs.load();
    if (context.quitting)
      return;
    runLaunch(device);
    device.activity = Activity::Done;
    ++device.progress;
    // The last one to end closes; who is last is decided under the lock.
    std::lock_guard<std::mutex> lock(context.runMutex);
    if (context.running &&
        std::all_of(context.run.devices.begin(), context.run.devices.end(),
                    [](Device *d) { return d->activity == Activity::Done; })) {
      closeBooks(context);
      context.running = false;
      // What comes next is up to the host, which waits for nobody.
      if (context.transport)
        context.transport->setStuck(0);
      context.runChanged.notify_all();
    }
  }
}

//===----------------------------------------------------------------------===//
// The host's side
//===----------------------------------------------------------------------===//

/// True if the launches give every device the place that it had in the last
/// run.
static bool sameLayout(const Run &run, const hp_launch *launches,
                       size_t count) {
  if (run.places.size() != count)
    return false;
  for (size_t i = 0; i < count; ++i) {
    const hp_launch &last = run.places[i]->launch;
    if (last.device != launches[i].device || last.group != launches[i].group ||
        last.rank != launches[i].rank)
      return false;
  }
  return true;
}

static void prepareRun(Context &context, const hp_launch *launches,
                       const std::vector<hp_entry_fn> &entries) {
  Run &run = context.run;
  if (!context.keepsGroups || !sameLayout(run, launches, entries.size())) {
    for (std::unique_ptr<Device> &device : context.devices)
      forEachLane(*device, [](Lane &lane) { lane.groups.clear(); });
    context.collectives.forgetGroups();
  }
  context.collectives.forgetMessages(++run.number);
  run.places.clear();
  run.devices.clear();
  run.failures.clear();
  run.stopping = false;
  std::map<int64_t, int64_t> meshSizes;
  for (size_t i = 0; i < entries.size(); ++i)
    ++meshSizes[launches[i].group];
  for (size_t i = 0; i < entries.size(); ++i) {
    const hp_launch &launch = launches[i];
    Device &device = *context.devices[launch.device];
    device.launch = launch;
    device.entry = entries[i];
    device.meshSize = meshSizes[launch.group];
    forEachLane(device, [](Lane &lane) { lane.stats = {}; });
    device.stats.device = launch.device;
    device.stats.group = launch.group;
    device.stats.rank = launch.rank;
    run.places.push_back(&device);
    if (isRemote(device))
      continue;
    device.activity = Activity::Running;
    run.devices.push_back(&device);
  }
  int count = std::max(1, static_cast<int>(run.devices.size()));
  run.threadsPerDevice = std::max(1, context.threads / count);
  // Spinning pays only where the awaited device has a core of its own, and no
  // longer than a sleep and a wake-up would cost (about 10 us).
  run.spins = count <= context.threads ? 400 : 40;
}

static bool anyHere(Context &context, const hp_launch *launches,
                    int64_t count) {
  return std::any_of(launches, launches + count, [&](const hp_launch &launch) {
    return !isRemote(*context.devices[launch.device]);
  });
}

/// Under the lock of runs.
static void failRun(Context &context, hp_status status,
                    const std::string &text) {
  Run &run = context.run;
  {
    std::lock_guard<std::mutex> failures(run.mutex);
    run.failures.push_back({-1, status, text});
  }
  run.stopping = true;
  context.collectives.wakeAll();
}

void stopRun(Context &context, hp_status status, const std::string &text) {
  std::lock_guard<std::mutex> lock(context.runMutex);
  context.lost = status;
  context.lostReason = text;
  if (context.running)
    failRun(context, status, text + describeDevices(context.run));
}

hp_status startRun(Context &context, const hp_launch *launches, int64_t count) {
  hp_status status = checkLaunches(
      launches, count, static_cast<int64_t>(context.devices.size()),
      [&](int64_t device) { return isRemote(*context.devices[device]); });
  std::vector<hp_entry_fn> entries(count > 0 ? count : 0);
  for (int64_t i = 0; status == HP_OK && i < count; ++i)
    if (!isRemote(*context.devices[launches[i].device]))
      status = findEntry(*reinterpret_cast<Program *>(launches[i].program),
                         launches[i].entry, &entries[i]);
  if (status != HP_OK)
    return status;
  if (context.transport && count > 0 && !anyHere(context, launches, count))
    return fail(HP_INVALID_ARGUMENT,
                "expected one launch at least on the devices of each process");
  std::lock_guard<std::mutex> lock(context.runMutex);
  if (context.running)
    return fail(HP_INVALID_ARGUMENT,
                "another run of this context has not ended");
  prepareRun(context, launches, entries);
  context.running = true;
  // What happened to another process between two runs ends this one at once.
  if (context.lost != HP_OK)
    failRun(context, context.lost, context.lostReason);
  context.reported = false;
  context.run.start = nowNs();
  for (Device *device : context.run.devices)
    device->jobs.add();
  context.runChanged.notify_all();
  return HP_OK;
}

/// The status of the run: that of the failure on the lowest device, leaving
/// out devices that were only stopped because of it.
static hp_status outcome(Run &run) {
  const Failure *chosen = nullptr;
  for (const Failure &failure : run.failures) {
    bool better = !chosen || (chosen->status == HP_CANCELLED &&
                              failure.status != HP_CANCELLED);
    bool alike = chosen && (chosen->status == HP_CANCELLED) ==
                               (failure.status == HP_CANCELLED);
    if (better || (alike && failure.device < chosen->device))
      chosen = &failure;
  }
  if (!chosen)
    return HP_OK;
  if (chosen->status == HP_DEADLOCK || chosen->status == HP_MISMATCH ||
      chosen->device < 0 || chosen->status == HP_CANCELLED)
    return failWith(chosen->status, chosen->message);
  return failWith(chosen->status, "device " + std::to_string(chosen->device) +
                                      ": " + chosen->message);
}

static void copyStats(Run &run, hp_run_stats *stats) {
  if (!stats || stats->struct_size < offsetof(hp_run_stats, replayed))
    return;
  if (stats->struct_size >= sizeof(hp_run_stats)) {
    stats->replayed = 0;
    stats->not_captured = nullptr;
  }
  stats->wall_ns = run.end - run.start;
  int64_t count = static_cast<int64_t>(run.devices.size());
  for (int64_t i = 0; stats->devices && i < count && i < stats->num_devices;
       ++i)
    stats->devices[i] = run.devices[i]->stats;
  stats->num_devices = count;
}

hp_status waitRun(Context &context, int64_t timeoutMs, int32_t *done,
                  hp_run_stats *stats) {
  if (!done)
    return fail(HP_INVALID_ARGUMENT, "hp_run_wait: expected a place for done");
  *done = 0;
  std::unique_lock<std::mutex> lock(context.runMutex);
  if (context.reported)
    return fail(HP_INVALID_ARGUMENT, "hp_run_wait: no run was started");
  auto ended = [&] { return !context.running || context.abandoned; };
  if (timeoutMs < 0)
    context.runChanged.wait(lock, ended);
  else if (!context.runChanged.wait_for(
               lock, std::chrono::milliseconds(timeoutMs), ended))
    return HP_OK;
  *done = 1;
  context.reported = true;
  if (!context.abandoned)
    copyStats(context.run, stats);
  std::lock_guard<std::mutex> failures(context.run.mutex);
  return outcome(context.run);
}

hp_status cancelRun(Context &context, const char *reason) {
  if (context.transport && reason)
    context.transport->tellFailure(reason);
  std::lock_guard<std::mutex> lock(context.runMutex);
  if (!context.running)
    return HP_OK;
  failRun(context, HP_CANCELLED,
          std::string("the run was cancelled") +
              (reason ? std::string(": ") + reason : ""));
  return HP_OK;
}

} // namespace hyperparallel::runtime
