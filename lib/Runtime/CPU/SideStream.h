// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- SideStream.h - Streams beside a device's own ----------------------===//
//
// A program's own work is done by its device's thread, as it is called: that
// thread is the compute stream. Collectives and messages that the program puts
// on another stream are done by a thread of that stream, in order, while the
// program goes on. A mark is a stream and how many actions were queued on it;
// it is reached when so many are done.
//
// Groups are a lane's own, so collectives of two streams never meet.
//
// A failure ends the run, as on the device's thread; what is still queued is
// dropped, and counts as done, since the run is stopping.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_SIDESTREAM_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_SIDESTREAM_H

#include "lib/Runtime/CPU/Device.h"

#include <functional>

namespace hyperparallel::runtime {

class SideStream : public Lane {
public:
  using Action = std::function<hp_status(Lane &)>;

  SideStream(Device &device, int32_t number);
  /// Finishes what is queued.
  ~SideStream();

  /// By the device's thread.
  void enqueue(Action action);
  /// How many actions were queued, by the device's thread.
  uint32_t queued() const { return total; }

  Counter done; ///< how many actions were done

private:
  void threadMain();

  std::mutex mutex; ///< guards the queue, and activity when it is Idle
  std::condition_variable changed;
  std::deque<Action> queue;
  bool quitting = false;
  uint32_t total = 0;
  std::thread thread;
};

/// The lane that the program's calls go to.
Lane &currentLane(Device &device);
/// Does the action, or queues it where the program's calls go.
hp_status perform(Device &device, SideStream::Action action);
/// Waits until all that was queued is done, or dropped.
void joinStreams(Device &device);
/// Calls visit(Lane &) for the device itself and its streams.
template <typename Visit>
void forEachLane(Device &device, Visit visit) {
  visit(static_cast<Lane &>(device));
  std::lock_guard<std::mutex> lock(device.besideMutex);
  for (std::unique_ptr<SideStream> &stream : device.beside)
    visit(static_cast<Lane &>(*stream));
}

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_SIDESTREAM_H
