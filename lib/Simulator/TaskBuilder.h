//===- TaskBuilder.h - the program of one group as tasks --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_SIMULATOR_TASKBUILDER_H
#define HYPERPARALLEL_LIB_SIMULATOR_TASKBUILDER_H

#include "lib/Analysis/CollectiveOps.h"
#include "lib/Simulator/Program.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include <map>

namespace mlir::hyperparallel {

/// A task, and an argument of its program that it needs.
using ArgumentUse = std::pair<simulator::TaskId, uint32_t>;
/// From, to, tag; each with the tasks at that end, in order.
using MessageKey = std::tuple<std::string, std::string, int64_t>;
struct Message {
  SmallVector<simulator::TaskId, 1> sends, receives;
};
using Messages = std::map<MessageKey, Message>;

/// What ties the steps of one program together.
struct StepLinks {
  SmallVector<ArgumentUse> argumentUses;
  /// Tasks that write over an argument, and transfers at the end that read
  /// what takes its place: those of a step wait for these of the step before.
  SmallVector<ArgumentUse> argumentWrites;
  DenseMap<uint32_t, SmallVector<simulator::TaskId, 1>> argumentReaders;
  /// By argument: the task that makes it for the next step.
  DenseMap<uint32_t, simulator::TaskId> makers;
  simulator::TaskId firstKernel = simulator::kNoTask;
  simulator::TaskId lastKernel = simulator::kNoTask;
  /// What kernels from here on have to wait for, and at the end, the first
  /// kernel of the next step: collectives that block, copies that are waited
  /// for.
  SmallVector<simulator::TaskId> pending;
  /// What waits for the kernel before it, and has none in this step.
  SmallVector<simulator::TaskId> beforeFirstKernel;
  /// Tasks that begin an output, with the place in their residency: the next
  /// step has it already.
  SmallVector<std::pair<simulator::TaskId, size_t>> outputs;
};

/// Appends the program of one group to the tasks of a step.
class TaskBuilder {
public:
  TaskBuilder(unsigned group, CostModel &model, MachineResources &resources,
              Messages &messages, ProgramTasks &result)
      : group(group), program(result.groups[group]), model(model),
        resources(resources), messages(messages), result(result),
        firstStream(result.streams.size()), firstTier(result.tiers.size()) {}

  LogicalResult run();

  StepLinks links;

private:
  static constexpr uint32_t kNone = ~0u;

  struct Buffer {
    double bytes;
    simulator::TierId tier;
    bool isArgument = false;
    /// All but inputs of the program, which are their owner's.
    bool isWritable = true;
    /// It stays after the step: for the next one, or as an output.
    bool isReturned = false;
    bool isOutput = false;
    /// Of an argument: another buffer takes its place in the next step.
    bool isReplaced = false;
    simulator::TaskId firstTask = simulator::kNoTask;
    /// The last task of each stream that uses it.
    SmallVector<simulator::TaskId, 2> lastTasks;
    /// Transfers that read it, for which no kernel has waited yet.
    SmallVector<simulator::TaskId, 1> readers;
  };

  /// Where a value is, which task makes it, or else of which argument it is.
  struct ValueInfo {
    uint32_t buffer = kNone;
    simulator::TaskId task = simulator::kNoTask;
    uint32_t argument = kNone;
  };

  using Environment = DenseMap<Value, ValueInfo>;

  FailureOr<SmallVector<ValueInfo>> walk(Block &block, Environment &values,
                                         const std::string &path);
  LogicalResult visit(Operation *op, Environment &values,
                      const std::string &path);
  FunctionOpInterface calleeOf(Operation *op);
  LogicalResult expandCall(Operation *op, FunctionOpInterface callee,
                           Environment &values, const std::string &path);
  LogicalResult expandLoop(LoopLikeOpInterface loop, int64_t trips,
                           Environment &values, const std::string &path);
  LogicalResult addTask(Operation *op, const TaskCost &cost,
                        Environment &values, const std::string &path);
  LogicalResult addMovement(MovementOpInterface op, Environment &values,
                            const std::string &path);
  LogicalResult describeCopy(Operation *op, const Movement &movement,
                             simulator::Task &task);
  void describeMessage(Operation *op, const Movement &movement,
                       simulator::Task &task, simulator::TaskId id);
  void flowThroughMemory(simulator::Task &task, const TaskCost &cost);
  void flowThroughNetwork(simulator::Task &task, const TaskCost &cost,
                          CollectiveDescription &collective);
  std::string howDone(CollectiveDescription &collective);
  void passThrough(Operation *op, Environment &values);
  void waitFor(Value operand, const Environment &values, simulator::Task &task,
               simulator::TaskId id);
  void waitForKernel(simulator::Task &task, simulator::TaskId id);
  LogicalResult addArguments(Environment &values);
  LogicalResult addResults(ArrayRef<ValueInfo> returned);
  void addResidency();
  simulator::StreamId getStream(StreamKind kind, const Twine &name);
  simulator::StreamId getStream(const CollectiveDescription &collective);
  FailureOr<simulator::TierId> getTier(Location where, StringRef name);
  uint32_t newBuffer(double bytes, simulator::TierId tier);
  uint32_t bufferOfResult(OpResult value, const Environment &values,
                          simulator::Task &task);
  void use(uint32_t buffer, simulator::TaskId task);
  /// Something was written there: an empty tensor takes no memory before.
  bool isThere(const ValueInfo &info) const {
    return info.task != simulator::kNoTask ||
           (info.buffer != kNone && buffers[info.buffer].isArgument);
  }
  supernode::MachineAttr machine() const { return resources.getMachine(); }

  unsigned group;
  GroupProgram program;
  CostModel &model;
  MachineResources &resources;
  Messages &messages;
  ProgramTasks &result;
  /// Streams and tiers from there on are this group's.
  simulator::StreamId firstStream;
  simulator::TierId firstTier;
  SymbolTableCollection symbols;
  std::vector<Buffer> buffers;
  SmallVector<Operation *> callStack;
  /// Streams that have copies since the last op.
  llvm::SmallDenseSet<simulator::StreamId> submitted;
  simulator::StreamId compute = 0, communication = 0;
  simulator::TierId memory = 0;
  bool isSynchronous = false;
  /// Collectives of the functions that are being walked, for which no kernel
  /// after them has to wait yet.
  SmallVector<simulator::TaskId> underWay;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_SIMULATOR_TASKBUILDER_H
