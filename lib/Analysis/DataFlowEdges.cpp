//===- DataFlowEdges.cpp - values that must be split alike ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Analysis/DataFlowEdges.h"

#include "lib/Analysis/StateUpdates.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::hyperparallel;

namespace {
/// Joins targets that share a source into edges (the block argument and the
/// result of a loop share its yield).
class EdgeBuilder {
public:
  void connect(OpOperand &source, Value target) {
    if (!isa<RankedTensorType>(target.getType()) ||
        !isa<RankedTensorType>(source.get().getType()))
      return;
    unsigned id = idOf(target);
    auto [it, inserted] = sourceTarget.try_emplace(&source, id);
    if (!inserted)
      classes.unionSets(it->second, id);
  }
  SmallVector<DataFlowEdge> build();

private:
  unsigned idOf(Value target) {
    auto [it, inserted] = ids.try_emplace(target, targets.size());
    if (inserted) {
      targets.push_back(target);
      classes.insert(it->second);
    }
    return it->second;
  }

  DenseMap<Value, unsigned> ids;
  SmallVector<Value> targets;
  llvm::EquivalenceClasses<unsigned> classes;
  llvm::MapVector<OpOperand *, unsigned> sourceTarget;
};
} // namespace

SmallVector<DataFlowEdge> EdgeBuilder::build() {
  llvm::MapVector<unsigned, DataFlowEdge> edges;
  for (auto [id, target] : llvm::enumerate(targets))
    edges[classes.getLeaderValue(id)].targets.push_back(target);
  for (auto [source, id] : sourceTarget)
    edges[classes.getLeaderValue(id)].sources.push_back(source);
  SmallVector<DataFlowEdge> result;
  for (auto &[leader, edge] : edges)
    result.push_back(std::move(edge));
  return result;
}

static void connectRegions(RegionBranchOpInterface op, EdgeBuilder &builder) {
  auto connectAll = [&](RegionBranchPoint point, auto getOperands) {
    SmallVector<RegionSuccessor> successors;
    op.getSuccessorRegions(point, successors);
    for (RegionSuccessor &successor : successors) {
      OperandRange operands = getOperands(successor);
      ValueRange inputs = successor.getSuccessorInputs();
      for (auto [index, target] : llvm::enumerate(inputs)) {
        if (index >= operands.size())
          break;
        OpOperand &source =
            operands.getBase()[index]; // operands are contiguous
        builder.connect(source, target);
      }
    }
  };
  connectAll(RegionBranchPoint::parent(), [&](RegionSuccessor &successor) {
    return op.getEntrySuccessorOperands(successor);
  });
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(
              block.getTerminator()))
        connectAll(RegionBranchPoint(terminator),
                   [&](RegionSuccessor &successor) {
                     return terminator.getSuccessorOperands(successor);
                   });
}

/// Arguments of a function take what its callers give.
static void connectCallArguments(CallOpInterface call,
                                 FunctionOpInterface callee,
                                 EdgeBuilder &builder) {
  OperandRange operands = call.getArgOperands();
  for (auto [index, argument] : llvm::enumerate(callee.getArguments()))
    builder.connect(operands.getBase()[index], argument);
}

/// One edge per result of a function that is called.
static void addResultEdges(FunctionOpInterface callee,
                           ArrayRef<CallOpInterface> calls,
                           SmallVectorImpl<DataFlowEdge> &edges) {
  SmallVector<std::optional<unsigned>> updated(callee.getNumResults());
  if (!callee.isExternal())
    updated = getUpdatedArguments(callee);
  for (unsigned index = 0; index < callee.getNumResults(); ++index) {
    if (!isa<RankedTensorType>(callee.getResultTypes()[index]))
      continue;
    DataFlowEdge edge;
    edge.function = callee;
    edge.functionResult = index;
    for (Block &block : callee.getFunctionBody())
      if (block.getTerminator()->hasTrait<OpTrait::ReturnLike>())
        edge.sources.push_back(&block.getTerminator()->getOpOperand(index));
    for (CallOpInterface call : calls)
      edge.targets.push_back(call->getResult(index));
    if (updated[index])
      edge.targets.push_back(callee.getArgument(*updated[index]));
    edges.push_back(std::move(edge));
  }
}

SmallVector<DataFlowEdge>
mlir::hyperparallel::collectDataFlowEdges(ModuleOp module) {
  EdgeBuilder builder;
  SymbolTable symbols(module);
  llvm::MapVector<Operation *, SmallVector<CallOpInterface>> calls;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (!function.isExternal())
      calls[function];
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto branch = dyn_cast<RegionBranchOpInterface>(op))
      connectRegions(branch, builder);
    auto call = dyn_cast<CallOpInterface>(op);
    if (!call)
      return;
    auto name = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
    auto callee =
        name ? symbols.lookup<FunctionOpInterface>(name.getRootReference())
             : FunctionOpInterface();
    if (!callee || callee.isExternal())
      return;
    connectCallArguments(call, callee, builder);
    calls[callee].push_back(call);
  });
  SmallVector<DataFlowEdge> edges = builder.build();
  for (auto &[function, callers] : calls)
    addResultEdges(cast<FunctionOpInterface>(function), callers, edges);
  return edges;
}
