//===- GroupSums.cpp - sums over several groups ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A tied weight has a gradient on each group that uses it, and a training step
// adds them for each microbatch: a += (first_m + last_m). Moved as written, one
// term crosses for every microbatch. Sums may be reassociated:
//
//   1. A function of which a result is `argument + v` returns v, and its
//      callers add: what autograd adds inside a backward segment comes to
//      light.
//   2. Trees of additions in @main, each with the terms that it adds. If calls
//      of several groups make them: one sum for each group, in the order of the
//      terms, then the sum of these. Terms of no group (zeros) go with the
//      first.
//
// Cost: linear in the ops.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/GroupSums.h"
#include "lib/Transforms/HyperMPMD/FunctionParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

/// The two terms of an elementwise addition of tensors.
static std::optional<std::pair<Value, Value>> matchSum(Operation *op) {
  if (!op || op->getNumResults() != 1 ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return std::nullopt;
  if (auto add = dyn_cast<arith::AddFOp>(op))
    return std::pair(add.getLhs(), add.getRhs());
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumLoops() != generic.getNumParallelLoops() ||
      !llvm::all_of(generic.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return std::nullopt;
  Block &body = *generic.getBody();
  auto add = dyn_cast_or_null<arith::AddFOp>(
      body.getTerminator()->getOperand(0).getDefiningOp());
  if (!add || &body.front() != add)
    return std::nullopt;
  auto left = dyn_cast<BlockArgument>(add.getLhs());
  auto right = dyn_cast<BlockArgument>(add.getRhs());
  if (!left || !right || left == right)
    return std::nullopt;
  return std::pair(generic->getOperand(left.getArgNumber()),
                   generic->getOperand(right.getArgNumber()));
}

static Value makeSum(OpBuilder &builder, Location loc, Value a, Value b) {
  auto type = cast<RankedTensorType>(a.getType());
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                       type.getElementType());
  auto map = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, type, ValueRange{a, b}, init,
             ArrayRef<AffineMap>{map, map, map}, loops,
             [](OpBuilder &inner, Location at, ValueRange values) {
               Value sum =
                   arith::AddFOp::create(inner, at, values[0], values[1]);
               linalg::YieldOp::create(inner, at, sum);
             })
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Sums at the end of functions
//===----------------------------------------------------------------------===//

/// The argument that the returned value adds to another value, or null.
static BlockArgument addedArgument(func::FuncOp function, Value returned) {
  auto terms = matchSum(returned.getDefiningOp());
  if (!terms || !returned.hasOneUse())
    return {};
  for (Value term : {terms->first, terms->second})
    if (auto argument = dyn_cast<BlockArgument>(term))
      if (argument.getOwner() == &function.getBody().front() &&
          argument.getType() == returned.getType() && argument.hasOneUse())
        return argument;
  return {};
}

/// The functions of one block that backward calls.
static CallsByFunction backwardCalls(func::FuncOp main) {
  SymbolTable symbols(main->getParentOfType<ModuleOp>());
  CallsByFunction calls;
  for (auto call : main.getBody().front().getOps<func::CallOp>()) {
    auto phase = call->getAttrOfType<StringAttr>("hp.phase");
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (callee && phase && phase.getValue() == "backward" &&
        !callee.isExternal() && callee.getBody().hasOneBlock())
      calls[callee].push_back(call);
  }
  return calls;
}

static void peelSums(const CallsByFunction &calls) {
  for (auto [function, callers] : calls) {
    Operation *terminator = function.getBody().front().getTerminator();
    for (OpOperand &returned : terminator->getOpOperands()) {
      BlockArgument argument = addedArgument(function, returned.get());
      if (!argument)
        continue;
      Operation *sum = returned.get().getDefiningOp();
      auto terms = matchSum(sum);
      // The argument stays, unread: callers agree about types.
      returned.set(terms->first == argument ? terms->second : terms->first);
      sum->erase();
      for (func::CallOp call : callers) {
        OpBuilder builder(call->getContext());
        builder.setInsertionPointAfter(call);
        Value part = call.getResult(returned.getOperandNumber());
        Value whole = makeSum(builder, call.getLoc(), part,
                              call.getOperand(argument.getArgNumber()));
        part.replaceAllUsesExcept(whole, whole.getDefiningOp());
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Trees of sums
//===----------------------------------------------------------------------===//

/// The terms that the value adds up, in order: additions with one use are seen
/// through.
static SmallVector<Value> termsOf(Value root) {
  SmallVector<Value> terms, open = {root};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    auto parts = value == root || value.hasOneUse()
                     ? matchSum(value.getDefiningOp())
                     : std::nullopt;
    if (!parts) {
      terms.push_back(value);
      continue;
    }
    open.push_back(parts->second);
    open.push_back(parts->first);
  }
  return terms;
}

int64_t hypermpmd::groupSums(func::FuncOp main, const StagePlan &plan) {
  if (plan.topology.getGroups().size() < 2)
    return 0;
  CallsByFunction calls = backwardCalls(main);
  peelSums(calls);
  dropUnreadArguments(main, calls);
  Block &body = main.getBody().front();
  auto groupOf = [&](Value value) -> StringAttr {
    Operation *maker = value.getDefiningOp();
    auto path =
        maker ? maker->getAttrOfType<StringAttr>("hp.path") : StringAttr();
    auto stage =
        path ? plan.stageOfPath.find(path.getValue()) : plan.stageOfPath.end();
    return stage == plan.stageOfPath.end() ? StringAttr()
                                           : plan.groups[stage->second];
  };
  SmallVector<Operation *> roots;
  for (Operation &op : body)
    if (matchSum(&op) && !(op.hasOneUse() && matchSum(*op.user_begin())))
      roots.push_back(&op);
  int64_t regrouped = 0;
  for (Operation *root : roots) {
    llvm::MapVector<StringAttr, SmallVector<Value>> byGroup;
    SmallVector<Value> others;
    for (Value term : termsOf(root->getResult(0))) {
      StringAttr group = groupOf(term);
      (group ? byGroup[group] : others).push_back(term);
    }
    if (byGroup.size() < 2)
      continue;
    OpBuilder builder(root);
    Location loc = root->getLoc();
    SmallVector<Value> sums;
    for (auto &[group, terms] : byGroup) {
      if (sums.empty())
        terms.insert(terms.begin(), others.begin(), others.end());
      Value sum = terms.front();
      for (Value term : ArrayRef(terms).drop_front())
        sum = makeSum(builder, loc, sum, term);
      sums.push_back(sum);
    }
    Value whole = sums.front();
    for (Value sum : ArrayRef(sums).drop_front())
      whole = makeSum(builder, loc, whole, sum);
    root->getResult(0).replaceAllUsesWith(whole);
    ++regrouped;
  }
  // What the old sums were made of.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (matchSum(&op) && op.use_empty())
      op.erase();
  return regrouped;
}
