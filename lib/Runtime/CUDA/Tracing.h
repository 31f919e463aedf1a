// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Tracing.h - Spans of work on streams ------------------------------===//
//
// While a trace is recorded, the work that a program queues is enclosed in
// events. When the run has ended on the device, their times become spans: of
// the compute stream on the device's own lane, of the others on theirs. The
// device's clock is laid on the host's where the run begins.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CUDA_TRACING_H
#define HYPERPARALLEL_LIB_RUNTIME_CUDA_TRACING_H

#include "lib/Runtime/CUDA/Driver.h"
#include "lib/Runtime/Trace.h"

#include <map>
#include <string>
#include <vector>

namespace hyperparallel::runtime::cuda {

struct Device;

/// Work on a stream, from `start` to `end`.
struct TraceMark {
  int32_t stream;       ///< its number
  const char *category; ///< a literal, as in the traces of "cpu"
  std::string name;
  int64_t bytes;
  EventHandle start, end;
};

class DeviceTracer {
public:
  /// A lane for a device's stream.
  void addLane(Trace &trace, int ordinal, int32_t stream);
  /// Before a device's first work in a run.
  hp_status beginRun(Device &device);
  bool isOn() const { return base != nullptr; }
  /// Before and after work is queued on a stream. Marks may be nested. Nothing
  /// where no trace is recorded.
  hp_status begin(Device &device, int32_t stream, const char *category,
                  std::string name, int64_t bytes);
  hp_status end(Device &device);
  /// When everything is done: makes spans of marks.
  hp_status endRun(Device &device, int64_t beginNs);

private:
  std::map<int32_t, TraceLane *> lanes;
  EventHandle base = nullptr;
  int64_t baseNs = 0;
  std::vector<TraceMark> marks;
  std::vector<size_t> open;
};

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_TRACING_H
