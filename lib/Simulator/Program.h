//===- Program.h - simulate a compiled program ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_SIMULATOR_PROGRAM_H
#define HYPERPARALLEL_LIB_SIMULATOR_PROGRAM_H

#include "lib/Analysis/CostModel.h"
#include "lib/Simulator/Engine.h"

namespace mlir::hyperparallel {

/// An op that takes time, in a call of its function.
struct ProgramTask {
  Operation *op;
  /// `hp.path` of the calls around it.
  std::string path;
  TaskCost cost;
};

/// The program of one device as tasks: stream 0 computes, stream 1
/// communicates; tier 0 is the device's memory.
struct ProgramTasks {
  simulator::Problem problem;
  SmallVector<ProgramTask> tasks;
};

enum ProgramStream : uint32_t { kComputeStream = 0, kCommunicationStream = 1 };

/// Turns `function` with everything it calls into tasks. Cost: linear in the
/// ops that are executed, calls expanded.
ProgramTasks makeProgramTasks(FunctionOpInterface function, CostModel &model);

/// Simulates the function and writes what came of it as JSON (documented in
/// python/hyperparallel/simulator). Fails with an error on the module if there
/// is no such function.
LogicalResult simulateProgram(ModuleOp module, StringRef function,
                              raw_ostream &os);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_SIMULATOR_PROGRAM_H
