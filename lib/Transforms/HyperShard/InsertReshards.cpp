//===- InsertReshards.cpp - make operands agree with their ops ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: reshards go where a value is not split as its user needs it.
// In: every tensor has a sharding. Out: for every op there are factor axes
// under which all its operands and results have their layouts
// (inferFactorAxes); the sources of every data-flow edge have the edge's
// sharding; no constraint and no barrier is left.
//
// How, for each op with a rule, in program order:
//  1. Collect ways to split its factors (SplitChoices): what each tensor
//     suggests, completed by the others; each also without its reduction axes.
//  2. Take the one of least seconds: the reshards that its operands need, the
//     op itself on local shapes, and the reshards of its results to the
//     shardings that propagation gave them. A tie goes to the first.
//  3. Reshard operands (once per value and layout in a block). The results get
//     the layouts that the op makes, partial ones included, and are resharded
//     to what they were meant to have.
//  4. Where all that an additive op reads was just reduced, and is used nowhere
//     else, it works on the partial sums and its result is reduced: views move
//     ahead of reductions, and of two sums that are added one is reduced.
// Then edges, constraints, barriers and manual regions.
//
// Cost: O(ops * tensors of an op) plans, which the planner remembers.
// Limits: choices are made op by op, in order; a reshard is not moved to a
// place where the value is smaller (see hypershard-optimize-collectives).
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/CostOpInterface.h"
#include "lib/Analysis/CostModel.h"
#include "lib/Analysis/ProgramLayouts.h"
#include "lib/Analysis/ReshardPath.h"
#include "lib/Analysis/SplitChoices.h"
#include "lib/Transforms/HyperShard/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

#define DEBUG_TYPE "hypershard-insert-reshards"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_INSERTRESHARDSPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

namespace {

class Resharder {
public:
  Resharder(ModuleOp module, MeshOp mesh)
      : layouts(module, MeshAxes(mesh.getMesh())),
        planner(layouts.mesh(), getCommunicationCost(module)),
        meshName(FlatSymbolRefAttr::get(mesh.getContext(), mesh.getSymName())) {
    if (planner.getCost().isMeasured())
      model.emplace(module);
    for (auto [index, edge] : llvm::enumerate(layouts.edges()))
      for (OpOperand *source : edge.sources)
        sources[source->getOwner()].push_back({source, index});
  }

  LogicalResult visitOp(Operation *op);
  /// Reshards what the op gives to data-flow edges.
  LogicalResult visitSources(Operation *op);
  LogicalResult replaceAnnotation(Operation *op, ShardingAttr sharding);
  LogicalResult visitManual(ManualOp op);

  int64_t numReshards = 0, numDelayed = 0, numChoices = 0;

private:
  LogicalResult split(Operation *op, const ShardingRule &rule,
                      const FactorAxes &axes);
  /// `value` with the layout `to`, at the insertion point of `builder`.
  FailureOr<Value> reshard(OpBuilder &builder, Location loc, Value value,
                           const TensorLayout &to);
  LogicalResult reshardOperand(OpOperand &operand, Operation *before,
                               const TensorLayout &to);
  void remake(Value value, const TensorLayout &to);
  LogicalResult reduceLater(Operation *op, ArrayRef<ReshardOp> sums);
  ShardingAttr toAttr(const TensorLayout &layout) {
    return layout.toAttr(meshName, layouts.mesh());
  }

  /// Of the op's kernel, on the machine of the module if it describes one.
  double kernelSeconds(const LocalWork &work, Type elementType);

  ProgramLayouts layouts;
  ReshardPlanner planner;
  /// Of the machine that the module describes, if it does.
  std::optional<CostModel> model;
  FlatSymbolRefAttr meshName;
  /// The operands of an op that feed edges, with the edge's number.
  DenseMap<Operation *, SmallVector<std::pair<OpOperand *, unsigned>, 4>>
      sources;
  /// Reshards already made: (value, sharding, block) to the result.
  DenseMap<std::tuple<Value, Attribute, Block *>, Value> made;
};

} // namespace

//===----------------------------------------------------------------------===//
// Making a reshard
//===----------------------------------------------------------------------===//

FailureOr<Value> Resharder::reshard(OpBuilder &builder, Location loc,
                                    Value value, const TensorLayout &to) {
  TensorLayout from = layouts.layoutOf(value);
  if (from == to)
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  const ReshardPlan &plan = planner.plan(type, from, to);
  if (!plan.isPossible())
    return emitError(loc) << "cannot reshard " << type << " from "
                          << toAttr(from) << " to " << toAttr(to) << ": "
                          << plan.refusal;
  ShardingAttr sharding = toAttr(to);
  // In program order, so that the one made earlier dominates.
  Value &known = made[{value, sharding, builder.getInsertionBlock()}];
  if (known)
    return known;
  auto op = ReshardOp::create(builder, loc, value, sharding);
  hypershard::setSharding(op, sharding);
  ++numReshards;
  remark::passed(loc, remark::RemarkOpts::name("reshard").category(DEBUG_TYPE))
      << remark::add("{0} received per device, {1} s", plan.bytes,
                     plan.seconds);
  known = op;
  return known;
}

/// Makes a value that is free to split with the layout `to`.
void Resharder::remake(Value value, const TensorLayout &to) {
  Operation *op = value.getDefiningOp();
  ShardingRule rule = getShardingRule(op);
  FactorAxes axes = project(rule, rule.results.front(), to.dims);
  for (const RuleTensor &operand : rule.operands)
    remake(operand.value, unproject(rule, operand, axes));
  hypershard::setSharding(value, toAttr(to));
}

LogicalResult Resharder::reshardOperand(OpOperand &operand, Operation *before,
                                        const TensorLayout &to) {
  if (layouts.layoutOf(operand.get()) != to && to.partial.empty() &&
      isFreeToSplit(operand.get())) {
    remake(operand.get(), to);
    return success();
  }
  OpBuilder builder(before);
  FailureOr<Value> value =
      reshard(builder, before->getLoc(), operand.get(), to);
  if (failed(value))
    return failure();
  operand.set(*value);
  return success();
}

//===----------------------------------------------------------------------===//
// Ops with a rule
//===----------------------------------------------------------------------===//

/// The op computes with its factors split so.
LogicalResult Resharder::split(Operation *op, const ShardingRule &rule,
                               const FactorAxes &axes) {
  for (const RuleTensor &tensor : rule.operands) {
    TensorLayout wanted = unproject(rule, tensor, axes);
    for (OpOperand *use : tensor.uses) {
      if (!tensor.isRead && layouts.layoutOf(tensor.value) != wanted) {
        // Nobody reads it: any memory will do.
        auto type = cast<RankedTensorType>(tensor.value.getType());
        OpBuilder builder(op);
        Value empty = tensor::EmptyOp::create(
            builder, op->getLoc(), type.getShape(), type.getElementType());
        hypershard::setSharding(empty, toAttr(wanted));
        use->set(empty);
        continue;
      }
      if (failed(reshardOperand(*use, op, wanted)))
        return failure();
    }
  }
  SmallVector<ShardingAttr> produced(op->getNumResults());
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  SmallVector<std::pair<Value, TensorLayout>, 1> moves;
  for (const RuleTensor &tensor : rule.results) {
    TensorLayout layout = unprojectResult(rule, tensor, axes);
    TensorLayout target = layouts.layoutOf(tensor.value);
    produced[cast<OpResult>(tensor.value).getResultNumber()] = toAttr(layout);
    if (layout != target)
      moves.push_back({tensor.value, target});
  }
  if (!rule.results.empty())
    hypershard::setResultShardings(op, produced);
  for (auto &[value, target] : moves) {
    FailureOr<Value> whole = reshard(builder, op->getLoc(), value, target);
    if (failed(whole))
      return failure();
    Operation *reshardOp = whole->getDefiningOp();
    value.replaceUsesWithIf(
        *whole, [&](OpOperand &use) { return use.getOwner() != reshardOp; });
  }
  return success();
}

/// The operand is a reshard, used here only, of a sum that is still partial.
static ReshardOp reducedSum(Value value, const ProgramLayouts &layouts) {
  auto reshard = value.getDefiningOp<ReshardOp>();
  if (!reshard || !reshard->hasOneUse() || !reshard.getInput().hasOneUse())
    return {};
  TensorLayout from = layouts.layoutOf(reshard.getInput());
  TensorLayout to = layouts.layoutOf(reshard);
  bool isSum = !from.partial.empty() && from.kind == Reduction::Sum &&
               to.partial.empty() && from.dims == to.dims;
  return isSum ? reshard : ReshardOp();
}

/// Everything that an additive op reads is a sum that was just reduced, in the
/// same way: f(reduce(a), reduce(b)) = reduce(f(a, b)), with less communication
/// if the result is smaller than the operands together, and not with more if it
/// is as large.
static SmallVector<ReshardOp, 2>
sumsToReduceLater(const ShardingRule &rule, const ProgramLayouts &layouts) {
  SmallVector<ReshardOp, 2> sums;
  int64_t operandBytes = 0;
  if (!rule.isAdditive || rule.results.size() != 1)
    return {};
  for (const RuleTensor &operand : rule.operands) {
    if (!operand.isRead)
      continue;
    ReshardOp sum = reducedSum(operand.value, layouts);
    if (!sum ||
        layouts.layoutOf(sum.getInput()).partial !=
            layouts.layoutOf((sums.empty() ? sum : sums.front()).getInput())
                .partial)
      return {};
    sums.push_back(sum);
    operandBytes += byteSize(operand.value.getType());
  }
  bool fits = inferFactorAxes(rule, [&](Value value) {
                return layouts.layoutOf(value);
              }).has_value();
  return fits && byteSize(rule.results.front().value.getType()) <= operandBytes
             ? sums
             : SmallVector<ReshardOp, 2>();
}

LogicalResult Resharder::reduceLater(Operation *op, ArrayRef<ReshardOp> sums) {
  TensorLayout whole = layouts.layoutOf(op->getResult(0));
  TensorLayout partial = whole;
  partial.setPartial(Reduction::Sum,
                     layouts.layoutOf(sums.front()->getOperand(0)).partial);
  for (ReshardOp sum : sums) {
    made.erase({sum.getInput(), sum.getSharding(), sum->getBlock()});
    sum.replaceAllUsesWith(sum.getInput());
    sum.erase();
  }
  hypershard::setSharding(op->getResult(0), toAttr(partial));
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  FailureOr<Value> reduced =
      reshard(builder, op->getLoc(), op->getResult(0), whole);
  if (failed(reduced))
    return failure();
  op->getResult(0).replaceAllUsesExcept(*reduced, reduced->getDefiningOp());
  numReshards -= sums.size();
  numDelayed += sums.size();
  return success();
}

double Resharder::kernelSeconds(const LocalWork &work, Type elementType) {
  if (!model)
    return assumedKernelSeconds(work);
  OpCost cost;
  cost.flops = work.flops;
  cost.contractionFlops = work.isContraction ? work.flops : 0;
  cost.bytesRead = work.bytes;
  return model->getKernelSeconds(cost, elementType);
}

LogicalResult Resharder::visitOp(Operation *op) {
  ShardingRule rule = getShardingRule(op);
  if (rule.operands.empty() && rule.results.empty())
    return success();
  SmallVector<ReshardOp, 2> sums = sumsToReduceLater(rule, layouts);
  if (!sums.empty())
    return reduceLater(op, sums);
  SplitChoices choices(rule, layouts);
  if (choices.ways().size() > 1)
    ++numChoices;
  const RuleTensor &first =
      rule.operands.empty() ? rule.results.front() : rule.operands.front();
  Type elementType = getElementTypeOrSelf(first.value.getType());
  SplitCost best = choices.cheapest(planner, [&](const LocalWork &work) {
    return kernelSeconds(work, elementType);
  });
  if (choices.ways().size() > 1)
    remark::passed(op->getLoc(),
                   remark::RemarkOpts::name("split").category(DEBUG_TYPE))
        << remark::add("way {0} of {1}: {2} bytes and {3} s, next best {4} s",
                       best.index, choices.ways().size(), best.bytes,
                       best.seconds, best.nextSeconds);
  return split(op, rule, choices.ways()[best.index]);
}

//===----------------------------------------------------------------------===//
// Edges, annotations, manual regions
//===----------------------------------------------------------------------===//

LogicalResult Resharder::visitSources(Operation *op) {
  for (auto [source, edge] : sources.lookup(op)) {
    ShardingAttr sharding = layouts.shardingOf(layouts.edges()[edge]);
    if (sharding &&
        failed(reshardOperand(
            *source, op, TensorLayout::fromAttr(sharding, layouts.mesh()))))
      return failure();
  }
  return success();
}

LogicalResult Resharder::replaceAnnotation(Operation *op,
                                           ShardingAttr sharding) {
  OpBuilder builder(op);
  FailureOr<Value> value =
      reshard(builder, op->getLoc(), op->getOperand(0),
              TensorLayout::fromAttr(sharding, layouts.mesh()));
  if (failed(value))
    return failure();
  op->getResult(0).replaceAllUsesWith(*value);
  op->erase();
  return success();
}

LogicalResult Resharder::visitManual(ManualOp op) {
  for (auto [operand, attr] :
       llvm::zip_equal(op->getOpOperands(), op.getInShardings()))
    if (failed(reshardOperand(
            operand, op,
            TensorLayout::fromAttr(cast<ShardingAttr>(attr), layouts.mesh()))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Ops that carry tensors without computing on them.
static bool hasNoRule(Operation *op) {
  return isa<RegionBranchOpInterface, CallOpInterface, func::FuncOp, ModuleOp,
             MeshOp>(op) ||
         op->hasTrait<OpTrait::IsTerminator>();
}

namespace {
struct InsertReshardsPass final
    : mlir::hyperparallel::hypershard::impl::InsertReshardsPassBase<
          InsertReshardsPass> {
  LogicalResult insert(Resharder &resharder) {
    // Inserted ops are not visited: the list is made first.
    SmallVector<Operation *> ops;
    walkTensorOps(getOperation(), [&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      LogicalResult status = success();
      if (auto constraint = dyn_cast<ConstraintOp>(op))
        status = resharder.replaceAnnotation(op, constraint.getSharding());
      else if (auto reshard = dyn_cast<ReshardOp>(op))
        status = resharder.replaceAnnotation(op, reshard.getSharding());
      else if (isa<BarrierOp>(op))
        status = resharder.replaceAnnotation(
            op, hypershard::getSharding(op->getResult(0)));
      else if (auto manual = dyn_cast<ManualOp>(op))
        status = resharder.visitManual(manual);
      else if (hasNoRule(op))
        status = resharder.visitSources(op);
      else
        status = resharder.visitOp(op);
      if (failed(status))
        return failure();
    }
    return success();
  }

  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getOnlyMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    Resharder resharder(getOperation(), *mesh);
    if (failed(insert(resharder)))
      signalPassFailure();
    numReshards += resharder.numReshards;
    numDelayed += resharder.numDelayed;
    numChoices += resharder.numChoices;
  }
};
} // namespace
