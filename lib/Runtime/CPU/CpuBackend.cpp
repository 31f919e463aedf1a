// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- CpuBackend.cpp - Contexts of "cpu" and its table ------------------===//

#include "lib/Runtime/CPU/CpuBackend.h"
#include "lib/Runtime/CPU/Communicator.h"
#include "lib/Runtime/CPU/Device.h"
#include "lib/Runtime/CPU/Stream.h"
#include "lib/Runtime/ElementTypes.h"
#include "lib/Runtime/Status.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace hyperparallel::runtime {

void Context::addStream(Stream *stream) {
  std::lock_guard<std::mutex> lock(streamMutex);
  streams.insert(stream);
}

void Context::removeStream(Stream *stream) {
  std::lock_guard<std::mutex> lock(streamMutex);
  streams.erase(stream);
}

namespace {

constexpr int64_t MostDevices = 4096;
/// How long a cancelled run may take to end before it is left to itself.
constexpr std::chrono::seconds Patience(5);

Context *contextOf(hp_context *context) {
  return reinterpret_cast<Context *>(context);
}
const Context *contextOf(const hp_context *context) {
  return reinterpret_cast<const Context *>(context);
}
Device *deviceOf(hp_device *device) {
  return reinterpret_cast<Device *>(device);
}

/// Cores that this process may use.
int usableCores() {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

hp_status parseNumber(const char *key, const char *text, int64_t low,
                      int64_t high, int64_t *out) {
  char *end = nullptr;
  errno = 0;
  long long value = std::strtoll(text, &end, 10);
  if (errno || end == text || *end || value < low || value > high)
    return fail(HP_INVALID_ARGUMENT,
                "option '%s': expected a number from %lld to %lld but got '%s'",
                key, static_cast<long long>(low), static_cast<long long>(high),
                text);
  *out = value;
  return HP_OK;
}

struct ProcessOptions {
  bool isSpread = false;
  Transport::Options transport;
};

hp_status applyOption(Context &context, ProcessOptions &options,
                      const char *key, const char *value) {
  int64_t number = 0;
  if (!std::strcmp(key, "threads")) {
    hp_status status = parseNumber(key, value, 1, 4096, &number);
    if (status == HP_OK)
      context.threads = static_cast<int>(number);
    return status;
  }
  if (!std::strcmp(key, "processes")) {
    options.isSpread = !std::strcmp(value, "mpi");
    return options.isSpread
               ? HP_OK
               : fail(HP_INVALID_ARGUMENT,
                      "option 'processes': expected 'mpi' but got '%s'", value);
  }
  if (!std::strcmp(key, "mpi")) {
    options.transport.library = value;
    return HP_OK;
  }
  if (!std::strcmp(key, "lost_ms")) {
    hp_status status = parseNumber(key, value, 100, 86400000, &number);
    options.transport.lostMs = number;
    options.transport.heartbeatMs =
        std::min<int64_t>(options.transport.heartbeatMs, number / 8);
    return status;
  }
  if (!std::strcmp(key, "watchdog_ms"))
    return parseNumber(key, value, 0, 86400000, &context.watchdogMs);
  if (!std::strcmp(key, "stuck_ms"))
    return parseNumber(key, value, 0, 86400000, &context.stuckMs);
  if (!std::strcmp(key, "openblas")) {
    context.blas.setPath(value);
    return HP_OK;
  }
  return fail(HP_INVALID_ARGUMENT,
              "back end 'cpu' has no option '%s'; it knows threads, openblas, "
              "watchdog_ms, stuck_ms, processes, mpi and lost_ms",
              key);
}

void nameThread(std::thread &thread, const std::string &name) {
#ifdef __linux__
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
#else
  (void)thread;
  (void)name;
#endif
}

void makeDevices(Context &context, int64_t numDevices) {
  for (int64_t i = 0; i < numDevices; ++i) {
    auto device = std::make_unique<Device>();
    device->backend = context.backend;
    device->context = &context;
    device->ordinal = static_cast<int>(i);
    device->lane = context.trace.addLane("device " + std::to_string(i));
    context.devices.push_back(std::move(device));
  }
}

void startThreads(Context &context) {
  context.workers = std::make_unique<WorkerPool>(
      context.threads - 1, static_cast<int>(context.devices.size()));
  for (std::unique_ptr<Device> &device : context.devices) {
    if (isRemote(*device))
      continue;
    device->thread = std::thread([d = device.get()] { deviceMain(*d); });
    nameThread(device->thread, "hp-device-" + std::to_string(device->ordinal));
  }
  if (context.watchdogMs > 0) {
    context.watchdog = std::thread([&context] { watchdogMain(context); });
    nameThread(context.watchdog, "hp-watchdog");
  }
}

hp_status createContext(const hp_context_desc *desc, hp_context **out) {
  int64_t numDevices = desc->num_devices == 0 ? 1 : desc->num_devices;
  if (numDevices < 1 || numDevices > MostDevices)
    return fail(HP_INVALID_ARGUMENT,
                "expected 1 to %lld virtual devices but got %lld",
                static_cast<long long>(MostDevices),
                static_cast<long long>(numDevices));
  auto context = std::make_unique<Context>();
  context->backend = cpuBackend();
  context->threads = usableCores();
  ProcessOptions options;
  for (int64_t i = 0; i < desc->num_options; ++i) {
    hp_status status = applyOption(*context, options, desc->options[2 * i],
                                   desc->options[2 * i + 1]);
    if (status != HP_OK)
      return status;
  }
  makeDevices(*context, numDevices);
  if (options.isSpread)
    if (hp_status status = connectProcesses(*context, options.transport);
        status != HP_OK)
      return status;
  startThreads(*context);
  *out = reinterpret_cast<hp_context *>(context.release());
  return HP_OK;
}

void destroyContext(hp_context *handle) {
  Context *context = contextOf(handle);
  cancelRun(*context, nullptr);
  context->circles.closeAll();
  std::set<Stream *> streams;
  {
    std::lock_guard<std::mutex> lock(context->streamMutex);
    streams.swap(context->streams);
  }
  for (Stream *stream : streams)
    delete stream;
  {
    std::unique_lock<std::mutex> lock(context->runMutex);
    // A device that does not come back keeps what it uses; the process's end
    // is the end of it.
    if (!context->runChanged.wait_for(lock, Patience,
                                      [&] { return !context->running; }))
      return;
    context->quitting = true;
  }
  context->runChanged.notify_all();
  for (std::unique_ptr<Device> &device : context->devices)
    device->jobs.add();
  for (std::unique_ptr<Device> &device : context->devices)
    if (device->thread.joinable())
      device->thread.join();
  if (context->watchdog.joinable())
    context->watchdog.join();
  // A transport that lost its peers may still be inside MPI, and keeps what it
  // uses, too.
  if (context->transport && context->transport->isBroken())
    return;
  context->transport.reset(); // it hands messages to what goes next
  delete context;
}

int64_t deviceCount(const hp_context *context) {
  return static_cast<int64_t>(contextOf(context)->devices.size());
}

hp_status getDevice(hp_context *context, int64_t ordinal, hp_device **out) {
  if (!out || ordinal < 0 || ordinal >= deviceCount(context))
    return fail(HP_INVALID_ARGUMENT,
                "hp_device_get: expected a device below %lld but got %lld",
                static_cast<long long>(deviceCount(context)),
                static_cast<long long>(ordinal));
  Device *device = contextOf(context)->devices[ordinal].get();
  if (isRemote(*device))
    return fail(HP_INVALID_ARGUMENT,
                "hp_device_get: device %lld is of process %d, not of this one",
                static_cast<long long>(ordinal), device->process);
  *out = reinterpret_cast<hp_device *>(device);
  return HP_OK;
}

hp_status setTierLimit(hp_device *device, hp_tier tier, int64_t limit) {
  return deviceOf(device)->pool.setLimit(tier, limit);
}

hp_status tierInfo(hp_device *device, hp_tier tier, int64_t *limit,
                   int64_t *used, int64_t *peak) {
  return deviceOf(device)->pool.info(tier, limit, used, peak);
}

hp_status resetTierPeak(hp_device *device, hp_tier tier) {
  return deviceOf(device)->pool.resetPeak(tier);
}

/// Handing memory out before the stream gets there is safe and simple; only
/// the release has to wait.
hp_status allocate(hp_device *device, hp_tier tier, int64_t bytes, hp_stream *,
                   void **out) {
  if (!out)
    return fail(HP_INVALID_ARGUMENT,
                "hp_alloc: expected a place for the result");
  return deviceOf(device)->pool.allocate(bytes, tier, BlockOwner::Host, out);
}

hp_status release(hp_device *device, void *pointer, hp_stream *stream) {
  MemoryPool &pool = deviceOf(device)->pool;
  if (!stream)
    return pool.release(pointer);
  reinterpret_cast<Stream *>(stream)->enqueue(
      "free", -1, [&pool, pointer] { return pool.release(pointer); });
  return HP_OK;
}

hp_status programLoad(hp_context *context, const char *path, hp_program **out) {
  return loadProgram(*contextOf(context), path, out);
}

hp_status programHasEntry(hp_program *program, const char *entry) {
  return findEntry(*reinterpret_cast<Program *>(program), entry, nullptr);
}

hp_status programUnload(hp_program *program) {
  return unloadProgram(reinterpret_cast<Program *>(program));
}

hp_status runStart(hp_context *context, const hp_launch *launches,
                   int64_t count) {
  return startRun(*contextOf(context), launches, count);
}

hp_status runWait(hp_context *context, int64_t timeoutMs, int32_t *done,
                  hp_run_stats *stats) {
  return waitRun(*contextOf(context), timeoutMs, done, stats);
}

hp_status runCancel(hp_context *context, const char *reason) {
  return cancelRun(*contextOf(context), reason);
}

hp_status traceBegin(hp_context *context, const char *path) {
  return contextOf(context)->trace.begin(path);
}

hp_status traceEnd(hp_context *context) {
  return contextOf(context)->trace.end();
}

hp_status deviceCan(hp_device *, hp_capability capability, int64_t first,
                    int64_t second) {
  switch (capability) {
  case HP_CAN_MULTIPLY:
    return second >= HP_ACT_NONE && second <= HP_ACT_SILU && first >= HP_F16 &&
                   first <= HP_F64
               ? HP_OK
               : fail(HP_UNIMPLEMENTED, "matmul: expected f16, bf16, f32 or "
                                        "f64 operands and a known activation");
  case HP_CAN_REDUCE:
    return canReduce(first, second)
               ? HP_OK
               : fail(HP_UNIMPLEMENTED, "%s of %s elements is not defined",
                      reductionName(second), dtypeName(first));
  case HP_CAN_STORE:
    return first >= 0 && first < HP_TIER_FILE
               ? HP_OK
               : fail(HP_UNIMPLEMENTED,
                      "the cpu back end has no memory in tier '%s'",
                      tierName(first));
  case HP_CAN_LAUNCH:
    return fail(HP_UNIMPLEMENTED,
                "programs of back end 'cpu' have no kernels of their own");
  case HP_CAN_ATTEND:
    return fail(HP_UNIMPLEMENTED, "the cpu back end has no call for attention: "
                                  "programs have two products and a softmax");
  }
  return fail(HP_INVALID_ARGUMENT, "hp_device_can: expected a capability");
}

/// Kernels and vendor operations stay empty: on this back end programs are
/// entries, and there is no vendor.
hp_backend_v1 makeTable() {
  hp_backend_v1 table = {};
  table.struct_size = sizeof(table);
  table.name = "cpu";
  table.context_create = createContext;
  table.context_destroy = destroyContext;
  table.device_count = deviceCount;
  table.device_get = getDevice;
  table.tier_set_limit = setTierLimit;
  table.tier_info = tierInfo;
  table.tier_reset_peak = resetTierPeak;
  table.alloc = allocate;
  table.free = release;
  table.device_can = deviceCan;
  addStreamEntries(table);
  addCommunicatorEntries(table);
  addProcessEntries(table);
  table.program_load = programLoad;
  table.program_has_entry = programHasEntry;
  table.program_unload = programUnload;
  table.run_start = runStart;
  table.run_wait = runWait;
  table.run_cancel = runCancel;
  table.trace_begin = traceBegin;
  table.trace_end = traceEnd;
  return table;
}

} // namespace

const hp_backend_v1 *cpuBackend() {
  static const hp_backend_v1 table = makeTable();
  return &table;
}

} // namespace hyperparallel::runtime
