// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Stream.h - Queues of asynchronous actions -------------------------===//
//
// A stream is a thread that takes actions from a queue, in order. The first
// action that fails ends the stream's work: later ones are dropped, and every
// hp_stream_sync returns that failure. An event refers to its latest record,
// so waiting keeps its meaning when the event is recorded again.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_STREAM_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_STREAM_H

#include "lib/Runtime/Trace.h"
#include "lib/Runtime/hp_backend.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace hyperparallel::runtime {

struct Device;

class Stream {
public:
  using Action = std::function<hp_status()>;

  Stream(Device &device, hp_stream_role role);
  /// Finishes what is queued.
  ~Stream();

  void enqueue(const char *name, int64_t bytes, Action action);
  hp_status sync();

  const hp_backend_v1 *backend; ///< must stay first
  Device &device;

private:
  struct Item {
    const char *name;
    int64_t bytes;
    Action action;
  };

  void threadMain();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> queue;
  bool busy = false, quitting = false;
  hp_status status = HP_OK;
  std::string message;
  TraceLane *lane;
  std::thread thread;
};

/// One recording of an event.
struct EventRecord {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int64_t time = 0;

  void complete();
  void wait();
};

struct Event {
  const hp_backend_v1 *backend; ///< must stay first
  std::mutex mutex;             ///< guards the pointer
  std::shared_ptr<EventRecord> record;

  std::shared_ptr<EventRecord> latest();
};

/// The table's entries for streams, events, copies and host tasks.
void addStreamEntries(hp_backend_v1 &table);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_STREAM_H
