// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeDriver.h - The state of the fake driver -----------------------===//
//
// Part of the fake driver; see FakeCuda.h.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TEST_RUNTIME_FAKES_FAKEDRIVER_H
#define HYPERPARALLEL_TEST_RUNTIME_FAKES_FAKEDRIVER_H

#include "lib/Runtime/CUDA/Driver.h"
#include "test/Runtime/fakes/Ptx.h"
#include "test/Runtime/fakes/Timelines.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace fake {

inline constexpr int Success = 0, InvalidValue = 1, OutOfMemory = 2,
                     NoBinaryForGpu = 209, InvalidPtx = 218,
                     InvalidContext = 201, InvalidHandle = 400, NotFound = 500,
                     Refused = 999;

struct FakeGraph;

struct FakeStream {
  size_t timeline;
  int device;
  Action current;               ///< of a library, between begin and end
  FakeGraph *capture = nullptr; ///< while it is captured
};

struct FakeEvent {
  uint64_t capture = 0; ///< the number of the one that recorded it last, or 0
  size_t place = 0;     ///< in that
  bool recorded = false;
  Clock clock;
  int64_t time = 0;
};

struct FakeFunction {
  const Kernel *kernel;
  int device;
};

struct FakeModule {
  Module module;
  int device;
  std::vector<std::unique_ptr<FakeFunction>> functions;
};

inline int64_t number(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::strtoll(text, nullptr, 10) : otherwise;
}

struct Driver {
  std::mutex mutex;
  bool isStarted = false;
  int devices = static_cast<int>(number("HP_FAKE_CUDA_DEVICES", 4));
  uint64_t bytes =
      static_cast<uint64_t>(number("HP_FAKE_CUDA_BYTES", int64_t(8) << 30));
  Timelines timelines;
  MemoryMap memory{timelines};
  std::set<FakeStream *> streams;
  std::set<FakeEvent *> events;
  std::set<FakeModule *> modules;
  std::set<FakeGraph *> graphs;
  uint64_t captures = 0;
  std::string message = "no error";
  char *arena = nullptr;
  uint64_t arenaUsed = 0;
  int64_t launches = 0, copies = 0, libraryCalls = 0, waits = 0, refusals = 0,
          graphLaunches = 0;

  ~Driver() {
    const char *path = std::getenv("HP_FAKE_CUDA_REPORT");
    std::FILE *file = path && *path ? std::fopen(path, "w") : nullptr;
    if (!file)
      return;
    std::fprintf(
        file,
        "{\"launches\": %lld, \"copies\": %lld, \"library_calls\": "
        "%lld, \"waits\": %lld, \"refusals\": %lld, "
        "\"graph_launches\": %lld}\n",
        static_cast<long long>(launches), static_cast<long long>(copies),
        static_cast<long long>(libraryCalls), static_cast<long long>(waits),
        static_cast<long long>(refusals),
        static_cast<long long>(graphLaunches));
    std::fclose(file);
  }

  int refuse(const std::string &what) {
    ++refusals;
    message = "fake GPU: " + what;
    std::fprintf(stderr, "%s\n", message.c_str());
    return Refused;
  }
};

Driver &driver();
/// The GPU that is current on this thread; -1 for none.
extern thread_local int currentDevice;
FakeStream *streamOf(Driver &d, void *handle);
/// The host's timeline, and the next action of a stream after what it knows.
size_t hostTimeline(Driver &d);
Action beginOn(Driver &d, FakeStream *stream, const std::string &what);
/// The host knows all that a stream, or all of a GPU's, have done.
void waitFor(Driver &d, const FakeStream *stream);
void waitForAll(Driver &d, int device);

/// What a stream is asked for while it is captured; on the stream given to it.
using Captured = std::function<int(void *)>;
int addToCapture(FakeStream *stream, Captured work);
/// This thread captures: what would wait, or make memory, is refused.
bool isCapturing(Driver &d, int device);
int refuseInCapture(Driver &d, const char *what);
int recordInCapture(FakeEvent *event, FakeStream *stream);
int waitInCapture(Driver &d, FakeStream *stream, FakeEvent *event);

inline constexpr uint64_t ArenaBytes = uint64_t(256) << 30;

/// Leaves with an error where this thread captures.
#define FAKE_NOT_CAPTURED(WHAT)                                                \
  if (isCapturing(d, currentDevice))                                           \
  return refuseInCapture(d, WHAT)

/// FAKE_STREAM(stream, handle): the stream, or leaves with an error.
#define FAKE_STREAM(NAME, HANDLE)                                              \
  FakeStream *NAME = streamOf(d, HANDLE);                                      \
  if (!NAME)                                                                   \
    return InvalidHandle;                                                      \
  if (NAME->device != currentDevice)                                           \
  return d.refuse("a stream of GPU " + std::to_string(NAME->device) +          \
                  " was used while GPU " + std::to_string(currentDevice) +     \
                  " was current")

} // namespace fake

#endif // HYPERPARALLEL_TEST_RUNTIME_FAKES_FAKEDRIVER_H
