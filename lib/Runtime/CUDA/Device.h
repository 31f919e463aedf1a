// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Device.h - GPUs, their memory, and the context of "cuda" ----------===//
//
// A context has the primary context of each GPU that it uses. A GPU has a
// thread that enters compiled programs, and four streams: what a program
// queues goes to the compute stream, but for copies between tiers (H2D and D2H
// streams), collectives that were started (COMM stream), and what the program
// itself puts on streams (ProgramStreams.cpp); the compute stream meets them
// again by events.
//
// Memory that a program allocates is ordered by the compute stream: it may be
// handed out again as soon as it is freed, since all uses are on that stream or
// were waited for by it.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CUDA_DEVICE_H
#define HYPERPARALLEL_LIB_RUNTIME_CUDA_DEVICE_H

#include "lib/Runtime/CUDA/CublasLt.h"
#include "lib/Runtime/CUDA/Driver.h"
#include "lib/Runtime/CUDA/Messages.h"
#include "lib/Runtime/CUDA/Nccl.h"
#include "lib/Runtime/CUDA/StepGraphs.h"
#include "lib/Runtime/CUDA/Tracing.h"
#include "lib/Runtime/hp_backend.h"

#include <atomic>
#include <condition_variable>
#include <csetjmp>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace hyperparallel::runtime::cuda {

struct Circle;
struct Context;
struct Program;

/// The books of one device's memory.
class Memory {
public:
  struct Block {
    int64_t bytes;
    int tier;
    bool ofRun;   ///< allocated by a program, and freed when its run ends
    bool ordered; ///< by a stream, as cuMemAllocAsync does it
  };
  struct Tier {
    int64_t limit = -1, used = 0, peak = 0;
  };

  hp_status setLimit(int tier, int64_t limit);
  hp_status info(int tier, int64_t *limit, int64_t *used, int64_t *peak);
  hp_status resetPeak(int tier);
  /// Counts bytes in a tier, or refuses.
  hp_status take(int tier, int64_t bytes);
  void giveBack(int tier, int64_t bytes);
  void add(void *pointer, Block block);
  /// Forgets a block; false if there is none.
  bool remove(void *pointer, Block *out);
  std::vector<std::pair<void *, Block>> blocksOfRun();

  static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

private:
  std::mutex mutex;
  Tier tiers[HP_TIER_COUNT];
  std::unordered_map<void *, Block> blocks;
};

constexpr int MaxArguments = 512;
constexpr int32_t NumOwnStreams = 4; ///< compute, H2D, D2H, COMM
constexpr unsigned EventWithoutTiming = 2;

/// What cuBLASLt has been told and has answered about a kind of product.
struct ProductPlan {
  lt::MatmulDesc desc = nullptr;
  lt::Layout a = nullptr, b = nullptr, c = nullptr;
  lt::Heuristic algorithm = {};
};

/// A copy between tiers, or a collective, that a program started.
struct Transfer {
  EventHandle done;
};

/// A stream that a program uses beyond the device's own (StreamNumbers.h).
struct SideStream {
  int32_t number;
  StreamHandle handle;
};

struct Device {
  const hp_backend_v1 *backend;
  Context *context;
  int ordinal;
  DeviceNumber number;
  ContextHandle handle = nullptr;
  int capability = 0; ///< 80 for sm_80
  std::string name;
  StreamHandle streams[NumOwnStreams] = {};
  std::vector<SideStream> beside;
  Memory memory;
  std::mutex cacheMutex;                           ///< guards pinned
  std::unordered_multimap<int64_t, void *> pinned; ///< freed, by size
  std::mutex planMutex;                            ///< guards the two below
  lt::Handle products = nullptr;
  std::unordered_map<std::string, ProductPlan> plans; ///< by kind of product
  int32_t *assertionWord = nullptr;                   ///< pinned
  /// Kernels that the running program has launched, by the address of the name.
  std::unordered_map<const char *, FunctionHandle> functions;

  std::map<std::string, nccl::Comm> comms; ///< by members
  // The current run.
  std::thread thread;
  hp_launch launch = {};
  hp_entry_fn entry = nullptr;
  hp_device_stats stats = {};
  int64_t meshSize = 1;
  /// What its program lets products and operators of the compute stream use.
  void *workspace = nullptr;
  uint64_t workspaceBytes = 0;
  hp_status status = HP_OK;
  std::string message;
  std::vector<std::unique_ptr<Transfer>> transfers;
  std::vector<EventHandle> marks; ///< by their numbers
  /// Where the program's collectives and messages go.
  int32_t current = HP_STREAM_COMPUTE;
  std::vector<EventHandle> freeEvents;
  SentMessages sent; ///< by the running program
  StepGraphs graphs;
  DeviceTracer tracer;
};

struct Context {
  const hp_backend_v1 *backend;
  Driver driver;
  CublasLt products;
  Nccl collectives;
  /// Counts runs that failed: groups are made anew after one.
  int64_t generation = 0;
  bool capturesSteps = true; ///< an option
  /// Which devices do what in the current run, and its number.
  std::vector<int64_t> places;
  int64_t placement = 0;
  std::string notCaptured; ///< why a device's step of the last run was no graph
  std::string driverPath;
  std::vector<std::unique_ptr<Device>> devices;
  Mailbox mailbox;
  Trace trace;
  std::mutex circleMutex; ///< guards the two below
  std::map<std::pair<std::string, std::vector<int64_t>>, std::weak_ptr<Circle>>
      circles; ///< communicators by name and members
  int64_t numCircles = 0;
  std::mutex programMutex; ///< guards programs
  std::set<Program *> programs;

  std::mutex runMutex; ///< guards the five below
  std::condition_variable runChanged;
  int running = 0;
  bool reported = true;
  int64_t start = 0, end = 0;
  std::vector<Device *> launched;
  std::atomic<Device *> firstFailed{nullptr}; ///< by itself
  std::atomic<bool> stopping{false};
  std::string reason;
};

struct Stream {
  const hp_backend_v1 *backend;
  Device *device;
  StreamHandle handle;
};

struct Event {
  const hp_backend_v1 *backend;
  Device *device;
  EventHandle handle;
  bool recorded = false;
};

struct Kernel {
  const hp_backend_v1 *backend;
  Program *program;
  std::string name;
};

struct Program {
  const hp_backend_v1 *backend;
  Context *context; ///< null once that was destroyed
  void *library;
  std::string path;
  std::vector<std::string> assertions; ///< by number, from 1 on
  std::vector<ModuleHandle> modules;   ///< by device; null until first used
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::mutex mutex;
};

/// The first address of a piece of memory that operators take.
inline void *alignWorkspace(void *pointer) {
  constexpr uintptr_t Mask = HP_WORKSPACE_ALIGNMENT - 1;
  return reinterpret_cast<void *>(
      (reinterpret_cast<uintptr_t>(pointer) + Mask) & ~Mask);
}

/// Makes the device's context the calling thread's.
hp_status enter(Device &device);

/// Device memory or pinned memory, ordered by `stream` if one is given.
hp_status allocateMemory(Device &device, int tier, int64_t bytes, bool ofRun,
                         StreamHandle stream, void **out);
hp_status freeMemory(Device &device, void *pointer, StreamHandle stream);

hp_status loadProgram(Context &context, const char *path, hp_program **out);
hp_status unloadProgram(Program *program);
/// Unloads a program's kernels from all devices.
void unloadModules(Program &program);
hp_status findEntry(Program &program, const char *entry, hp_entry_fn *out);
hp_status findFunction(Program &program, Device &device, const char *name,
                       FunctionHandle *out);
hp_status launchFunction(Device &device, FunctionHandle function,
                         const int64_t grid[3], const int64_t block[3],
                         int64_t sharedBytes, void **args, int64_t numArgs,
                         StreamHandle stream);

/// What differs between the vendors whose back ends are made of this code.
struct Vendor {
  const char *name;    ///< of the back end
  const char *devices; ///< what its devices are called
};
const Vendor &vendor();
hp_status applyOption(Context &context, const char *key, const char *value);
/// The number of an assertion that failed since the last time, or 0.
int32_t takeViolation(Device &device);
/// The function behind a slot that only this vendor's programs have; or null.
void *findVendorImport(const char *name);
/// Enters the device's entry; comes back when it ends, or when a failure leaves
/// it (RunCalls.cpp).
hp_status enterProgram(Device &device);
/// Ends what a run's program has marked or started (ProgramStreams.cpp).
void endMarks(Device &device);
/// Sets the slots of a program that was loaded (GeneratedCalls.cpp).
hp_status bindImports(Program &program);
/// The current run's program leaves by this, with the thread's last message.
struct ThreadState {
  Device *device = nullptr;
  std::jmp_buf *exit = nullptr;
};
ThreadState &threadState();

void addCommEntries(hp_backend_v1 &table);
void addStreamEntries(hp_backend_v1 &table);
void addProgramEntries(hp_backend_v1 &table);
void addRunEntries(hp_backend_v1 &table);

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_DEVICE_H
