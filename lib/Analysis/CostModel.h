//===- CostModel.h - seconds and bytes of a program -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What every planner and the simulator decide by. It reads the machine
// (#supernode.machine) and what ops say of themselves (CostOpInterface), and
// knows no planner.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_COSTMODEL_H
#define HYPERPARALLEL_LIB_ANALYSIS_COSTMODEL_H

#include "dialects/Interfaces/CostOpInterface.h"
#include "dialects/Supernode/Supernode.h"
#include "lib/Analysis/CollectiveCost.h"
#include "lib/Analysis/KernelFusion.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::hyperparallel {

/// What a task's time goes to. `None`: it takes none.
enum class Bound { None, Launch, Compute, Memory, Communication };

StringRef stringifyBound(Bound bound);

/// One op or call as one device executes it.
struct TaskCost {
  OpCost work;
  double seconds = 0;
  /// Of `seconds`, those spent in collectives.
  double communicationSeconds = 0;
  /// What the contractions would take at the peak rate: over `seconds`, this is
  /// the model flops utilisation.
  double peakSeconds = 0;
  /// Of an op; of a call, what most of its seconds go to.
  Bound bound = Bound::None;
  /// Kernels and collectives that are started.
  double launches = 0;
  /// Ops of unknown cost, counted as one pass over operands and results.
  double estimated = 0;
};

/// Keeps what it has seen of functions: make another when the program changes.
class CostModel {
public:
  /// The cost on one device of the machine's group number `group`, while
  /// `devices` of the machine are at work (they share cores and memory buses).
  explicit CostModel(supernode::MachineAttr machine, unsigned group = 0,
                     int64_t devices = 1);
  /// On the machine of the module, or else on the preset "cpu-supernode", with
  /// the devices of its largest mesh.
  explicit CostModel(ModuleOp module);

  supernode::MachineAttr getMachine() const { return machine; }
  supernode::DeviceGroupAttr getGroup() const { return group; }

  /// An op with everything in it: a call is the sum of its callee, a loop its
  /// body times its trip count (once if that is unknown), a branch its dearest
  /// region. Functions are visited once. An op that shares a kernel with others
  /// (KernelFusion.h) has its part of it, so that costs add up.
  TaskCost getCost(Operation *op);

  /// Peak operations per second of a contraction on the element type. A type
  /// that the machine does not list is done in the narrowest listed type of its
  /// kind that is as wide, or on vector units.
  double getPeakRate(Type elementType) const;
  /// The part of the peak that the group reaches.
  double getContractionRate(Type elementType) const;

  /// max(operations / rate, bytes / bandwidth) + launch; 0 for no work. Where
  /// the group says how: with packing, cut over cores, or in turn with others.
  double getKernelSeconds(const OpCost &work, Type elementType) const;

  /// The collective that is fastest, over every group along `axes` (the slowest
  /// group counts). `localBytes`: what each device puts in. Cached.
  CollectiveCost getCollective(CollectiveKind kind,
                               const hypershard::MeshAxes &mesh,
                               ArrayRef<hypershard::Axis> axes,
                               double localBytes);

  /// The outermost level of the network that a group along `axes` crosses; null
  /// if it crosses none.
  supernode::LevelAttr getOutermostLevel(const hypershard::MeshAxes &mesh,
                                         ArrayRef<hypershard::Axis> axes);

  /// Seconds of a copy between tiers while `concurrent` devices copy the same
  /// way, each in its place of the machine; nullopt if there is no such link.
  std::optional<double> getTransferSeconds(StringRef from, StringRef to,
                                           double bytes,
                                           int64_t concurrent = 1) const;

  /// The machine's network as the reshard planner reads it.
  CommunicationParameters getCommunicationParameters() const;

private:
  TaskCost costOfLeaf(Operation *op);
  TaskCost costOfKernel(const OpCost &work, Type elementType) const;
  void planBlock(Block *block);
  struct MemorySeconds {
    double alone;
    double onBus;
  };
  MemorySeconds memorySeconds(double bytes) const;
  double onSharedCores(double seconds) const;
  int64_t workingInUnit(StringRef scope) const;
  TaskCost costOfRegion(Region &region);
  TaskCost costOfCallee(Operation *call);
  ArrayRef<GroupLevels> getGroupLevels(const hypershard::MeshAxes &mesh,
                                       ArrayRef<hypershard::Axis> axes);

  supernode::MachineAttr machine;
  supernode::DeviceGroupAttr group;
  supernode::TierAttr memory;
  int64_t devices;
  SymbolTableCollection symbols;
  /// The ops of structured kernels, for each block that was asked about.
  DenseSet<Block *> planned;
  DenseMap<Operation *, TaskCost> kernels;
  DenseMap<Operation *, TaskCost> functions;
  /// By mesh, then by axes as (axis, pre, size) in a row.
  DenseMap<std::pair<Attribute, Attribute>, SmallVector<GroupLevels, 1>>
      groupLevels;
};

/// What reshards are planned by: the machine of the module, or, if it names
/// none, the documented defaults (only bytes are compared then).
CommunicationCost getCommunicationCost(ModuleOp module);

/// The machine of the module, or else the preset "cpu-supernode".
supernode::MachineAttr getMachineOrDefault(Operation *op);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_COSTMODEL_H
