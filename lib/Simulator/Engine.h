//===- Engine.h - discrete-event execution of tasks -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Executes tasks that are already scheduled: each belongs to a stream, streams
// do their tasks one after the other in the order given, and a task waits for
// the tasks it depends on. Two tasks may meet: they begin together. What a task
// takes is a latency and then a flow of bytes through segments of wire (or of
// memory bandwidth), which all flows at that moment share. Knows no MLIR and no
// machine: programs are turned into tasks elsewhere.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_SIMULATOR_ENGINE_H
#define HYPERPARALLEL_LIB_SIMULATOR_ENGINE_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mlir::hyperparallel::simulator {

using TaskId = uint32_t;
using StreamId = uint32_t;
using SegmentId = uint32_t;
using TierId = uint32_t;

/// No task.
constexpr TaskId kNoTask = ~0u;

/// Bytes that a task takes from a tier when it starts (positive), or gives back
/// when it ends (negative).
struct Residency {
  TierId tier;
  double atStart = 0;
  double atEnd = 0;
};

/// What a flow takes of a segment: its rate times `weight`. A flow that stands
/// for those of 16 devices on one segment has weight 16 there.
struct Use {
  SegmentId segment;
  double weight = 1;
};

struct Task {
  StreamId stream;
  /// Before the flow: latency, launch, or all of a task that moves no bytes.
  double seconds = 0;
  /// Then this many bytes flow, at `rate` when nothing is in the way.
  double bytes = 0;
  double rate = 0;
  std::vector<Use> uses;
  std::vector<TaskId> dependencies;
  /// The task that this one meets, of which it is the partner: both begin when
  /// both can, and end when both are through (a send, and its receive).
  TaskId partner = kNoTask;
  std::vector<Residency> residency;
};

/// Bytes that are given back to a tier when all of the tasks have ended.
struct Release {
  TierId tier;
  double bytes;
  std::vector<TaskId> after;
};

struct Problem {
  uint32_t numStreams = 0;
  /// Bytes per second of each segment.
  std::vector<double> segments;
  /// Bytes resident in each tier at the beginning.
  std::vector<double> tiers;
  /// In the order of each stream.
  std::vector<Task> tasks;
  std::vector<Release> releases;
  /// Multiplies every latency and flow by 1 + noise * u, u uniform in [-1, 1),
  /// from a generator with this seed.
  double noise = 0;
  uint64_t seed = 0;
};

struct Span {
  double start = 0;
  double end = 0;
};

/// The bytes resident in a tier from a moment on.
struct Level {
  double time;
  double bytes;
};

struct Result {
  /// Empty if all is well: what is wrong with the problem, or which tasks wait
  /// for each other.
  std::string error;
  /// Of a deadlock: some tasks, each with the one it waits for.
  std::vector<std::pair<TaskId, TaskId>> stuck;
  double seconds = 0;
  /// By task.
  std::vector<Span> spans;
  /// By stream: seconds during which one of its tasks runs.
  std::vector<double> busy;
  /// By segment: bytes that went through, times weights.
  std::vector<double> moved;
  /// By tier: every change, in order of time, and the highest level.
  std::vector<std::vector<Level>> residency;
  std::vector<double> peak;
};

Result simulate(const Problem &problem);

} // namespace mlir::hyperparallel::simulator

#endif // HYPERPARALLEL_LIB_SIMULATOR_ENGINE_H
