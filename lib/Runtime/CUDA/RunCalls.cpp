// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- RunCalls.cpp - Runs of compiled programs on GPUs ------------------===//
//
// A thread for each launch enters the program, which queues its work and does
// not wait for it; then the thread waits for the streams, looks whether a
// kernel failed an assertion, and does the books.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/ArgumentChecks.h"
#include "lib/Runtime/CUDA/Device.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>

namespace hyperparallel::runtime::cuda {

ThreadState &threadState() {
  static thread_local ThreadState state;
  return state;
}

static void record(Device &device, hp_status status) {
  if (device.status == HP_OK && status != HP_OK) {
    device.status = status;
    device.message = hp_last_error();
    Device *none = nullptr;
    if (status != HP_CANCELLED)
      device.context->firstFailed.compare_exchange_strong(none, &device);
  }
  if (status != HP_OK)
    device.context->stopping = true;
}

hp_status enterProgram(Device &device) {
  std::jmp_buf exit;
  threadState() = {&device, &exit};
  int left = _setjmp(exit);
  if (left == 0)
    device.entry(device.launch.args, device.launch.results);
  threadState() = {};
  device.workspace = nullptr;
  device.workspaceBytes = 0;
  return static_cast<hp_status>(left);
}

static hp_status checkAssertions(Device &device) {
  int32_t number = takeViolation(device);
  if (number == 0)
    return HP_OK;
  const auto &texts =
      reinterpret_cast<Program *>(device.launch.program)->assertions;
  bool isKnown = number > 0 && static_cast<size_t>(number) <= texts.size();
  return fail(HP_PROGRAM_ERROR, "assertion failed: %s",
              isKnown ? texts[number - 1].c_str() : "(no message)");
}

static hp_status reserve(Device &device) {
  for (int tier = 0; tier < HP_TIER_COUNT; ++tier) {
    hp_status status =
        device.memory.take(tier, Memory::rounded(device.launch.resident[tier]));
    if (status == HP_OK)
      continue;
    while (tier-- > 0)
      device.memory.giveBack(tier,
                             Memory::rounded(device.launch.resident[tier]));
    return status;
  }
  return HP_OK;
}

/// Ends the run on a device: everything queued is done, and what the program
/// left behind is freed and counted.
static void finish(Device &device, int64_t begin) {
  Driver &driver = device.context->driver;
  auto waitFor = [&](StreamHandle stream) {
    record(device, driver.check(driver.streamSynchronize(stream),
                                "running the program"));
  };
  for (StreamHandle stream : device.streams)
    waitFor(stream);
  for (const SideStream &stream : device.beside)
    waitFor(stream.handle);
  record(device, checkAssertions(device));
  record(device, device.tracer.endRun(device, begin));
  endMarks(device);
  endStep(device, device.status == HP_OK);
  for (int tier = 0; tier < HP_TIER_COUNT; ++tier)
    device.memory.info(tier, nullptr, nullptr, &device.stats.peak[tier]);
  for (const auto &entry : device.memory.blocksOfRun()) {
    device.stats.leaked[entry.second.tier] += entry.second.bytes;
    freeMemory(device, entry.first, device.streams[HP_STREAM_COMPUTE]);
  }
}

/// Frees what nobody received; every device has ended.
static void freeMessages(Context &context) {
  for (Device *device : context.launched)
    if (!device->sent.empty() && enter(*device) == HP_OK)
      record(*device,
             device->sent.free(*device, device->streams[HP_STREAM_COMPUTE],
                               /*all=*/true));
}

static void deviceMain(Device &device) {
  Context &context = *device.context;
  int64_t begin = nowNs();
  hp_status status = enter(device);
  for (int tier = 0; tier < HP_TIER_COUNT; ++tier)
    device.memory.resetPeak(tier);
  bool isReserved = false;
  if (status == HP_OK) {
    status = reserve(device);
    isReserved = status == HP_OK;
  }
  record(device, status);
  if (status == HP_OK) {
    record(device, device.tracer.beginRun(device));
    if (!replayStep(device, &status))
      status = enterProgram(device);
    record(device, status);
    finish(device, begin);
  }
  if (isReserved)
    for (int tier = 0; tier < HP_TIER_COUNT; ++tier)
      device.memory.giveBack(tier,
                             Memory::rounded(device.launch.resident[tier]));
  device.stats.wall_ns = nowNs() - begin;
  device.stats.status = device.status;
  if (context.mailbox.endDevice())
    freeMessages(context);
  std::lock_guard<std::mutex> lock(context.runMutex);
  if (--context.running == 0)
    context.end = nowNs();
  context.runChanged.notify_all();
}

namespace {

Context &contextOf(hp_context *context) {
  return *reinterpret_cast<Context *>(context);
}

hp_status runStart(hp_context *handle, const hp_launch *launches,
                   int64_t count) {
  Context &context = contextOf(handle);
  hp_status status = checkLaunches(launches, count,
                                   static_cast<int64_t>(context.devices.size()),
                                   [](int64_t) { return false; });
  std::vector<hp_entry_fn> entries(count > 0 ? count : 0);
  for (int64_t i = 0; status == HP_OK && i < count; ++i)
    status = findEntry(*reinterpret_cast<Program *>(launches[i].program),
                       launches[i].entry, &entries[i]);
  if (status != HP_OK)
    return status;
  std::lock_guard<std::mutex> lock(context.runMutex);
  if (context.running > 0)
    return fail(HP_INVALID_ARGUMENT,
                "another run of this context has not ended");
  if (context.stopping)
    ++context.generation;
  context.running = static_cast<int>(count);
  context.reported = false;
  context.stopping = false;
  context.reason.clear();
  context.launched.clear();
  context.firstFailed = nullptr;
  context.start = nowNs();
  context.mailbox.beginRun(static_cast<size_t>(count));
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count; ++i)
    places.insert(places.end(),
                  {launches[i].device, launches[i].group, launches[i].rank});
  if (places != context.places)
    ++context.placement;
  context.places = std::move(places);
  std::map<int64_t, int64_t> sizes;
  for (int64_t i = 0; i < count; ++i)
    ++sizes[launches[i].group];
  for (int64_t i = 0; i < count; ++i) {
    Device &device = *context.devices[launches[i].device];
    if (device.thread.joinable())
      device.thread.join();
    device.launch = launches[i];
    device.entry = entries[i];
    device.status = HP_OK;
    device.meshSize = sizes[launches[i].group];
    device.stats = {};
    device.stats.device = launches[i].device;
    device.stats.group = launches[i].group;
    device.stats.rank = launches[i].rank;
    context.launched.push_back(&device);
  }
  for (Device *device : context.launched)
    device->thread = std::thread([device] { deviceMain(*device); });
  return HP_OK;
}

/// The failure of the first device that failed by itself.
hp_status outcome(Context &context) {
  const Device *chosen = context.firstFailed;
  for (const Device *device : context.launched)
    if (!chosen && device->status != HP_OK)
      chosen = device;
  if (!chosen)
    return HP_OK;
  if (chosen->status == HP_CANCELLED)
    return hp_backend_error(HP_CANCELLED,
                            ("the run was cancelled" + context.reason).c_str());
  std::string message =
      "device " + std::to_string(chosen->ordinal) + ": " + chosen->message;
  return hp_backend_error(chosen->status, message.c_str());
}

hp_status runWait(hp_context *handle, int64_t timeoutMs, int32_t *done,
                  hp_run_stats *stats) {
  if (!done)
    return fail(HP_INVALID_ARGUMENT, "hp_run_wait: expected a place for done");
  Context &context = contextOf(handle);
  *done = 0;
  std::unique_lock<std::mutex> lock(context.runMutex);
  if (context.reported)
    return fail(HP_INVALID_ARGUMENT, "hp_run_wait: no run was started");
  auto ended = [&] { return context.running == 0; };
  if (timeoutMs < 0)
    context.runChanged.wait(lock, ended);
  else if (!context.runChanged.wait_for(
               lock, std::chrono::milliseconds(timeoutMs), ended))
    return HP_OK;
  *done = 1;
  context.reported = true;
  context.notCaptured.clear();
  int64_t replayed = 0;
  for (const Device *device : context.launched) {
    replayed += device->graphs.replayed;
    if (!device->graphs.replayed && context.notCaptured.empty())
      context.notCaptured = device->graphs.notCaptured;
  }
  if (stats && stats->struct_size >= sizeof(hp_run_stats)) {
    stats->replayed = replayed;
    stats->not_captured =
        context.notCaptured.empty() ? nullptr : context.notCaptured.c_str();
  }
  if (stats && stats->struct_size >= offsetof(hp_run_stats, replayed)) {
    stats->wall_ns = context.end - context.start;
    int64_t count = static_cast<int64_t>(context.launched.size());
    for (int64_t i = 0;
         stats->devices && i < std::min(count, stats->num_devices); ++i)
      stats->devices[i] = context.launched[i]->stats;
    stats->num_devices = count;
  }
  return outcome(context);
}

hp_status runCancel(hp_context *handle, const char *reason) {
  Context &context = contextOf(handle);
  std::lock_guard<std::mutex> lock(context.runMutex);
  if (context.running == 0)
    return HP_OK;
  if (reason && context.reason.empty())
    context.reason = std::string(": ") + reason;
  context.stopping = true;
  return HP_OK;
}

} // namespace

void addRunEntries(hp_backend_v1 &table) {
  table.run_start = runStart;
  table.run_wait = runWait;
  table.run_cancel = runCancel;
}

} // namespace hyperparallel::runtime::cuda
