// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Device.h - Virtual devices, runs and the context of "cpu" ---------===//
//
// A context owns a fixed set of devices, each with a thread of its own that
// sleeps between runs. A run gives every launch to its device's thread; the
// last device to end does the books and marks the run as finished.
//
//   host thread            device threads            watchdog
//   hp_run_start ────────▶ entry(args, results)      looks on
//   hp_run_wait  ◀──────── the last one finishes
//
// A failure on a device is recorded in the run, which then is `stopping`:
// every device leaves its program at its next call into the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_DEVICE_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_DEVICE_H

#include "lib/Runtime/CPU/Collectives.h"
#include "lib/Runtime/CPU/Communicator.h"
#include "lib/Runtime/CPU/Counter.h"
#include "lib/Runtime/CPU/Matmul.h"
#include "lib/Runtime/CPU/MemoryPool.h"
#include "lib/Runtime/CPU/Transfers.h"
#include "lib/Runtime/CPU/WorkerPool.h"
#include "lib/Runtime/Processes/Transport.h"
#include "lib/Runtime/Trace.h"
#include "lib/Runtime/hp_backend.h"

#include <condition_variable>
#include <csetjmp>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hyperparallel::runtime {

struct Context;
class SideStream;
class Stream;

enum class Activity : int { Idle, Running, Waiting, Done };

/// What does calls for a device, one after the other: the device's own thread,
/// which is its compute stream, or a stream beside it.
struct Lane {
  Device *owner = nullptr;
  int32_t stream = 0;          ///< as hp_rt_stream_begin numbers them
  std::deque<GroupRef> groups; ///< grows only, so references stay valid
  hp_device_stats stats = {};  ///< of a stream beside: of its calls only
  TraceLane *lane = nullptr;

  // What the watchdog reads.
  std::atomic<Activity> activity{Activity::Idle};
  std::atomic<uint64_t> progress{0};
  std::mutex waitMutex; ///< guards the three below
  const Call *waitingIn = nullptr;
  const Counter *waitingFor = nullptr;
  uint32_t waitTarget = 0;
};

/// What all handles begin with.
struct Handle {
  const hp_backend_v1 *backend;
};

struct Device : Handle, Lane {
  Device();
  ~Device();

  Context *context;
  int ordinal;
  int process = 0; ///< that it belongs to
  MemoryPool pool;
  std::thread thread; ///< none if it is another process's
  Counter jobs;       ///< grows with every launch, and at the end

  // What the device does in the current run; written between runs only.
  hp_launch launch = {};
  hp_entry_fn entry = nullptr;
  int64_t meshSize = 0;
  bool ownsReservation = false;

  // Used by the device's own thread only.
  std::vector<Call *> futures;
  Transfers transfers;
  std::vector<Span> openRanges;

  // Streams beside the device's own: its thread makes them when a program first
  // uses them, and they stay.
  std::mutex besideMutex; ///< guards what others may see of the list
  std::vector<std::unique_ptr<SideStream>> beside;
  SideStream *current = nullptr; ///< that calls go to; null: the device's own

  // What the watchdog knows a loop without end by.
  std::atomic<uint64_t> numCalls{0}; ///< of the runtime, by its own thread
  std::atomic<const char *> lastCall{nullptr};
  std::atomic<bool> isMultiplying{false};
};

/// What went wrong on a device.
struct Failure {
  int device;
  hp_status status;
  std::string message;
};

struct Run {
  uint64_t number = 0;           ///< the same in all processes
  std::vector<Device *> places;  ///< all that take part, in launch order
  std::vector<Device *> devices; ///< those of this process
  int threadsPerDevice = 1;
  int spins = 0; ///< rounds before a waiting device goes to sleep
  int64_t start = 0, end = 0;
  std::atomic<bool> stopping{false};
  std::mutex mutex; ///< guards failures
  std::vector<Failure> failures;
};

struct Context {
  const hp_backend_v1 *backend;
  int threads = 1;
  int64_t watchdogMs = 100;
  int64_t stuckMs = 0;
  Blas blas;
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<WorkerPool> workers;
  Collectives collectives;
  Circles circles;
  Trace trace;
  std::atomic<bool> quitting{false};
  std::unique_ptr<Transport> transport; ///< null: one process

  std::mutex runMutex; ///< guards what follows up to the watchdog
  std::condition_variable runChanged;
  bool running = false;     ///< from run_start until the last device has ended
  bool abandoned = false;   ///< the run failed, and a device does not come back
  bool reported = true;     ///< the host has fetched the result
  Run run;                  ///< devices read it without the lock while running
  bool keepsGroups = false; ///< the last run left its groups in order
  hp_status lost = HP_OK;   ///< what ended another process, and all runs
  std::string lostReason;
  std::thread watchdog;

  std::mutex streamMutex; ///< guards streams
  std::set<Stream *> streams;

  void addStream(Stream *stream);
  void removeStream(Stream *stream);
};

/// What the calling thread is doing for a device.
struct ThreadState {
  Device *device = nullptr;
  std::jmp_buf *exit = nullptr; ///< where a failure leaves to
  bool inBody = false;          ///< inside a hp_rt_parallel_for body
  const char *label = nullptr;
};
ThreadState &threadState();

/// What this process's devices wait in, a line for each.
std::string describeDevices(Run &run);
/// Ends a run for a reason that is not a device's, and wakes who waits.
void stopRun(Context &context, hp_status status, const std::string &text);

/// True if the device is another process's.
bool isRemote(const Device &device);
/// Brings a message to the channel of that key, wherever its reader is.
void putMessage(Device &reader, const ChannelKey &key, std::vector<char> data);
/// Waits for the next message of that key on behalf of `call`.
hp_status takeMessage(Lane &lane, const ChannelKey &key, const Call &call,
                      std::vector<char> &message);

/// Connects the processes that share the context's devices.
hp_status connectProcesses(Context &context, const Transport::Options &options);
void addProcessEntries(hp_backend_v1 &table);

/// Records a failure of `device` with this thread's lastError() and stops the
/// run.
void recordFailure(Device &device, hp_status status);

/// HP_CANCELLED if the lane's run is being stopped.
hp_status checkStopping(Lane &lane);

/// Waits for `counter` to reach `target` on behalf of `call`; HP_CANCELLED if
/// the run is stopped first.
hp_status waitFor(Lane &lane, Counter &counter, uint32_t target,
                  const Call &call);

/// The device's thread.
void deviceMain(Device &device);
/// The watchdog's thread (Watchdog.cpp).
void watchdogMain(Context &context);

hp_status startRun(Context &context, const hp_launch *launches, int64_t count);
hp_status waitRun(Context &context, int64_t timeoutMs, int32_t *done,
                  hp_run_stats *stats);
hp_status cancelRun(Context &context, const char *reason);

/// A loaded shared object.
struct Program {
  const hp_backend_v1 *backend;
  void *library;
  std::string path;
};
hp_status loadProgram(Context &context, const char *path, hp_program **out);
hp_status findEntry(Program &program, const char *entry, hp_entry_fn *out);
hp_status unloadProgram(Program *program);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_DEVICE_H
