// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- StepGraphs.h - A step that is run again is a graph ----------------===//
//
// A step is a run of a program's entry with certain buffers. What it queues is
// the same each time if the host has no part in it, so:
//
//   first time    it is run as it is, and what it allocates is noted
//   second time   its memory is allocated ahead, it is captured without being
//                 run, and the graph is launched
//   from then on  the graph is launched
//
// Not captured are steps in which the host has a part (it reads or writes the
// device's memory, or waits for another device's message), steps of a recorded
// trace, and those whose memory does not fit twice. If capturing fails, the
// step is run as it is from then on. Nothing was queued by then.
//
// The memory of a captured step stays allocated until its program is unloaded,
// or the step makes room for newer ones.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CUDA_STEPGRAPHS_H
#define HYPERPARALLEL_LIB_RUNTIME_CUDA_STEPGRAPHS_H

#include "lib/Runtime/CUDA/Driver.h"
#include "lib/Runtime/hp_runtime.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace hyperparallel::runtime::cuda {

struct Device;
struct Program;

/// What makes two runs the same step of a device.
struct StepKey {
  const Program *program = nullptr;
  hp_entry_fn entry = nullptr;
  int64_t group = 0, rank = 0;
  int64_t placement = 0;  ///< which devices take part, by number
  int64_t generation = 0; ///< of groups of devices
  std::vector<void *> buffers;

  bool operator==(const StepKey &other) const;
};

/// A piece of memory that allocations of a step share, one after the other: all
/// are in the order of one stream.
struct StepBlock {
  int tier;
  int64_t bytes;
  StreamHandle stream;
  bool isFree;
  void *address; ///< null until the step is captured
};

struct Step {
  StepKey key;
  std::vector<StepBlock> blocks;
  std::vector<size_t> allocations; ///< in order: of which block
  std::unordered_map<void *, size_t> live;
  bool hasRun = false;
  std::string hostPart; ///< why it is not captured; empty: it can be
  GraphExecHandle graph = nullptr;
  hp_device_stats stats = {}; ///< of a run
  int64_t lastRun = 0;
};

/// A device's steps, and the one of the current run.
struct StepGraphs {
  std::vector<std::unique_ptr<Step>> steps;
  Step *current = nullptr; ///< is noted, or captured
  bool isCapturing = false;
  size_t nextAllocation = 0; ///< while capturing
  int64_t runs = 0;
  bool replayed = false;   ///< the current run was a graph
  std::string notCaptured; ///< why it was not
};

/// Runs the step as a graph if it can be one: false if the program is to be
/// entered. A failure is the run's.
bool replayStep(Device &device, hp_status *status);
/// After a run that entered the program.
void endStep(Device &device, bool succeeded);
/// Says why the current step cannot be a graph.
void noteHostPart(Device &device, const char *what);
/// Forgets the steps of a program, or all.
void forgetSteps(Device &device, const Program *program);

/// Memory of the current run, in the order of a stream.
hp_status takeRunMemory(Device &device, int tier, int64_t bytes,
                        StreamHandle stream, void **out);
hp_status giveRunMemory(Device &device, void *pointer, StreamHandle stream);

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_STEPGRAPHS_H
