//===- LowerReshards.cpp - each reshard becomes collectives ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: each hypershard.reshard becomes the cheapest collectives.
// In: every tensor has a sharding (one without is whole). Out: no reshard;
//   collectives in global form, each with the sharding of its result.
// How, for each reshard in program order:
//   1. plan it (lib/Analysis/ReshardPath.h); no plan is an error;
//   2. make its steps, one after the other, taking a step that is there already
//      (same operand, same collective, dominating) instead of making it again,
//      so that two reshards of one value share their common beginning;
//   3. put a remark on record: what was chosen, what it costs, and what the
//      plan that gathers and slices would have cost.
// Cost: linear in reshards; equal plans are made once.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "lib/Analysis/CostModel.h"
#include "lib/Analysis/ProgramLayouts.h"
#include "lib/Analysis/ReshardPath.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "hypershard-lower-reshards"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_LOWERRESHARDSPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

//===----------------------------------------------------------------------===//
// What to say
//===----------------------------------------------------------------------===//

static std::string toText(ArrayAttr axes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '{';
  llvm::interleaveComma(
      axes.getAsRange<AxisRefAttr>(), os, [&](AxisRefAttr axis) {
        os << '"' << axis.getName() << '"';
        if (axis.isSubAxis())
          os << ":(" << axis.getPreSize() << ')' << axis.getSize();
      });
  os << '}';
  return text;
}

/// "reduce_scatter {"tp"} + all_gather {"dp"}: 1024 bytes, 3.2 us".
static std::string describe(const ReshardPlan &plan, const MeshAxes &mesh) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      plan.steps, os,
      [&](const ReshardStep &step) {
        os << stringifyCollectiveKind(step.kind) << ' '
           << toText(mesh.toArrayAttr(step.axes));
      },
      " + ");
  os << llvm::formatv(": {0} bytes, {1:f2} us", plan.bytes, plan.seconds * 1e6);
  if (plan.isFallback)
    os << "; too many layouts to search";
  if (plan.gatherBytes && *plan.gatherBytes != plan.bytes)
    os << llvm::formatv("; refused: gather and slice, {0} bytes, {1:f2} us",
                        *plan.gatherBytes, plan.gatherSeconds * 1e6);
  return text;
}

//===----------------------------------------------------------------------===//
// Making steps
//===----------------------------------------------------------------------===//

/// The collective of a step, in global form.
static Operation *makeStep(OpBuilder &builder, Location loc, Value input,
                           const ReshardStep &step, FlatSymbolRefAttr meshName,
                           const MeshAxes &mesh, Reduction kind) {
  Type type = input.getType();
  ArrayAttr axes = mesh.toArrayAttr(step.axes);
  IntegerAttr dim = builder.getI64IntegerAttr(step.dim);
  auto reduction = ReductionAttr::get(builder.getContext(), kind);
  Operation *op = nullptr;
  switch (step.kind) {
  case CollectiveKind::AllGather:
    op = AllGatherOp::create(builder, loc, type, input, meshName, axes, dim);
    break;
  case CollectiveKind::AllReduce:
    op = AllReduceOp::create(builder, loc, type, input, meshName, axes,
                             reduction);
    break;
  case CollectiveKind::ReduceScatter:
    op = ReduceScatterOp::create(builder, loc, type, input, meshName, axes,
                                 reduction, dim);
    break;
  case CollectiveKind::AllToAll:
    op = AllToAllOp::create(builder, loc, type, input, meshName, axes, dim,
                            builder.getI64IntegerAttr(step.concatDim));
    break;
  case CollectiveKind::Permute:
    op = PermuteOp::create(builder, loc, type, input, meshName, axes,
                           mesh.toArrayAttr(step.toAxes));
    break;
  case CollectiveKind::SliceLocal:
    op = SliceLocalOp::create(builder, loc, type, input, meshName, axes, dim);
    break;
  }
  setSharding(op->getResult(0), step.after.toAttr(meshName, mesh));
  return op;
}

namespace {
/// The steps made so far, by what they do.
class StepTable {
public:
  explicit StepTable(DominanceInfo &dominance) : dominance(dominance) {}

  /// An equal op whose result can be used where `op` is, or null.
  Operation *find(Operation *op) {
    for (Operation *other : ops[keyOf(op)])
      if (dominance.properlyDominates(other, op))
        return other;
    return nullptr;
  }
  void add(Operation *op) { ops[keyOf(op)].push_back(op); }

private:
  using Key = std::tuple<Value, StringRef, DictionaryAttr>;
  static Key keyOf(Operation *op) {
    return {op->getOperand(0), op->getName().getStringRef(),
            op->getAttrDictionary()};
  }

  DominanceInfo &dominance;
  llvm::DenseMap<Key, SmallVector<Operation *, 1>> ops;
};

struct LowerReshardsPass final
    : hypershard::impl::LowerReshardsPassBase<LowerReshardsPass> {
  void runOnOperation() override;

private:
  LogicalResult lower(ReshardOp reshard, const ProgramLayouts &layouts,
                      ReshardPlanner &planner, StepTable &table);
};
} // namespace

LogicalResult LowerReshardsPass::lower(ReshardOp reshard,
                                       const ProgramLayouts &layouts,
                                       ReshardPlanner &planner,
                                       StepTable &table) {
  const MeshAxes &mesh = planner.getMesh();
  Value value = reshard.getInput();
  ShardingAttr source = layouts.shardingOf(value);
  TensorLayout from = layouts.layoutOf(value);
  TensorLayout to = TensorLayout::fromAttr(reshard.getSharding(), mesh);
  const ReshardPlan &plan = planner.plan(reshard.getType(), from, to);
  if (!plan.isPossible()) {
    InFlightDiagnostic error = reshard.emitOpError();
    error << "expected a sharding that the operand can be brought to, but "
          << plan.refusal;
    if (source)
      error.attachNote(value.getLoc()) << "the operand has " << source;
    return error;
  }

  FlatSymbolRefAttr meshName = reshard.getSharding().getMesh();
  OpBuilder builder(reshard);
  for (const ReshardStep &step : plan.steps) {
    Operation *op = makeStep(builder, reshard.getLoc(), value, step, meshName,
                             mesh, from.partial.empty() ? to.kind : from.kind);
    if (Operation *earlier = table.find(op)) {
      op->erase();
      op = earlier;
      ++numShared;
    } else {
      table.add(op);
      ++numCollectives;
      numBytes += step.bytes;
    }
    value = op->getResult(0);
  }
  if (plan.steps.empty()) {
    ++numIdentities;
  } else {
    ++numLowered;
    remark::passed(reshard.getLoc(),
                   remark::RemarkOpts::name("reshard").category(DEBUG_TYPE))
        << describe(plan, mesh);
  }
  if (plan.isFallback)
    ++numNotSearched;
  reshard.replaceAllUsesWith(value);
  reshard.erase();
  return success();
}

void LowerReshardsPass::runOnOperation() {
  ModuleOp module = getOperation();
  SmallVector<ReshardOp> reshards;
  module.walk([&](ReshardOp reshard) { reshards.push_back(reshard); });
  if (reshards.empty())
    return markAllAnalysesPreserved();

  FailureOr<MeshOp> meshOp = getOnlyMesh(module);
  if (failed(meshOp))
    return signalPassFailure();
  MeshAxes mesh(meshOp->getMesh());
  ProgramLayouts layouts(module, mesh);
  ReshardPlanner planner(mesh, getCommunicationCost(module));
  DominanceInfo dominance;
  StepTable table(dominance);
  for (ReshardOp reshard : reshards)
    if (failed(lower(reshard, layouts, planner, table)))
      return signalPassFailure();
}
