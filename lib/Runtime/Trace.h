// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Trace.h - Spans recorded by devices and streams -------------------===//
//
// Every thread that records owns a lane, so recording takes no lock. The file
// is Chrome-trace JSON (chrome://tracing, Perfetto): one process per context,
// one named track per lane, complete events ("ph": "X") in microseconds.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_TRACE_H
#define HYPERPARALLEL_LIB_RUNTIME_TRACE_H

#include "lib/Runtime/hp_runtime.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace hyperparallel::runtime {

/// Nanoseconds of a clock that never goes back.
int64_t nowNs();

struct Span {
  const char *category; ///< a literal
  std::string name;
  int64_t begin, end; ///< nowNs()
  int64_t bytes;      ///< -1: none
};

struct TraceLane {
  std::string name;
  std::vector<Span> spans;
};

class Trace {
public:
  bool enabled() const { return recording.load(std::memory_order_relaxed); }

  hp_status begin(const char *path);
  hp_status end();

  /// A lane for the calling thread's use alone; lives as long as the trace.
  TraceLane *addLane(std::string name);

private:
  std::atomic<bool> recording{false};
  std::mutex mutex;
  std::string path;
  int64_t start = 0;
  std::deque<TraceLane> lanes;
};

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_TRACE_H
