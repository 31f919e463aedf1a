// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Collectives.h - What the calls of compiled programs share ---------===//
//
// Every function of a program's slots leaves the program by longjmp where it
// fails, so none may hold an object with a destructor when it calls `proceed`
// with a failure; what has one lives in functions that return a status.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CUDA_COLLECTIVES_H
#define HYPERPARALLEL_LIB_RUNTIME_CUDA_COLLECTIVES_H

#include "lib/Runtime/CUDA/Device.h"
#include "lib/Runtime/ElementTypes.h"

namespace hyperparallel::runtime::cuda {

/// The device of the calling thread's program.
Device &currentDevice();
/// Leaves the program if the step failed, or if the run is being stopped.
void proceed(Device &device, hp_status status);
/// An event of the device's stock.
Result takeEvent(Device &device, EventHandle *out);
/// Makes `later` go on when all that is queued on `earlier` is done.
Result followStream(Device &device, StreamHandle later, StreamHandle earlier);
/// A transfer that is done when all that is queued on the stream is.
hp_status addTransfer(Device &device, StreamHandle stream, void **out);
/// Makes the compute stream go on when a transfer is done, and ends it.
void waitForTransfer(void *transfer);
/// The device's stream of a number that the program has used.
StreamHandle streamOf(Device &device, int32_t number);

/// Queues work on a stream, and encloses it in a span where a trace is
/// recorded; `name` makes the span's.
template <typename Name, typename Work>
hp_status traced(Device &device, int32_t stream, const char *category,
                 int64_t bytes, Name name, Work work) {
  if (!device.tracer.isOn())
    return work();
  hp_status status =
      device.tracer.begin(device, stream, category, name(), bytes);
  if (status == HP_OK)
    status = work();
  hp_status ended = device.tracer.end(device);
  return status == HP_OK ? ended : status;
}

struct Import {
  const char *name;
  void *function;
};
template <typename Fn>
Import makeImport(const char *name, Fn *function) {
  return {name, reinterpret_cast<void *>(function)};
}
void *findIn(const Import *imports, size_t count, const char *name);

/// The functions behind a slot of a collective, and of a call that has to do
/// with streams; null if there is none.
void *findCollective(const char *name);
void *findStreamCall(const char *name);
/// Leaves all groups.
void forgetGroups(Device &device);

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_COLLECTIVES_H
