//===- Program.h - programs as tasks of the simulator -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_SIMULATOR_PROGRAM_H
#define HYPERPARALLEL_LIB_SIMULATOR_PROGRAM_H

#include "dialects/Interfaces/MovementOpInterface.h"
#include "lib/Analysis/CostModel.h"
#include "lib/Simulator/Engine.h"
#include "lib/Simulator/MachineResources.h"

namespace mlir::hyperparallel {

/// What a device group executes. One device stands for all of them.
struct GroupProgram {
  std::string name;
  FunctionOpInterface function;
  DeviceRange devices;
};

enum class StreamKind { Compute, Communication, H2D, D2H, Network };

/// A stream of the simulator.
struct ProgramStream {
  std::string name;
  StreamKind kind;
  unsigned group;
};

/// A tier of the simulator: what one device of the group has in it.
struct ProgramTier {
  supernode::TierAttr tier;
  unsigned group;
  /// Its part, where devices share the tier.
  double capacity;
};

/// An op that takes time, in a call of its function.
struct ProgramTask {
  Operation *op;
  /// `hp.path` of the calls around it.
  std::string path;
  TaskCost cost;
  std::optional<Movement> movement;
  /// Why it takes what it takes, in words.
  std::string reason;
};

struct ProgramTasks {
  SmallVector<GroupProgram> groups;
  SmallVector<ProgramStream> streams;
  SmallVector<ProgramTier> tiers;
  SmallVector<LinkInfo> links;
  /// Of one step, group by group, in program order.
  std::vector<ProgramTask> tasks;
  /// Several where steps overlap, so that some have a step before and one after
  /// them, as every step of a long run.
  unsigned steps = 1;
  /// The step that is reported, counted from 0.
  unsigned reported = 0;
  /// Task i of step k is task k * tasks.size() + i.
  simulator::Problem problem;
};

/// The programs of the module: the functions that carry `supernode.program`, or
/// else `entry` on all devices of the module's mesh.
FailureOr<SmallVector<GroupProgram>> findPrograms(ModuleOp module,
                                                  StringRef entry);

/// Turns programs, with everything they call, into tasks. Cost: linear in the
/// ops that are executed, calls expanded. Fails with a located error where a
/// program does not fit the machine or the others. `steps`: how many there are
/// where steps can overlap.
FailureOr<ProgramTasks> makeProgramTasks(ModuleOp module,
                                         ArrayRef<GroupProgram> programs,
                                         unsigned steps);

struct SimulationOptions {
  /// Times vary by up to this part.
  double noise = 0;
  uint64_t seed = 0;
};

/// Simulates a module and writes its timeline as JSON, which
/// python/hyperparallel/simulator/timeline.py documents. Fails with an error on
/// what cannot be simulated.
LogicalResult simulateProgram(ModuleOp module, StringRef entry,
                              SimulationOptions options, raw_ostream &os);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_SIMULATOR_PROGRAM_H
