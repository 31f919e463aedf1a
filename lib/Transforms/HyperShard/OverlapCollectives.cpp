//===- OverlapCollectives.cpp - start early, wait late --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: a collective becomes its `_start`, where its operand is ready, and a
//   `done`, where its result is first read.
// In, out: local form. Collectives between which there is nothing to do stay as
//   they are, and slice_local and halo_exchange, which have no `_start`.
// How: in program order, so that the collectives of a group start in the order
// of
//   the program; every device runs the same program, so they match.
// Cost: linear in collectives and their uses.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

/// The `_start` form's name; empty if there is none.
static StringRef startNameOf(Operation *op) {
  if (isa<AllGatherOp>(op))
    return AllGatherStartOp::getOperationName();
  if (isa<AllReduceOp>(op))
    return AllReduceStartOp::getOperationName();
  if (isa<ReduceScatterOp>(op))
    return ReduceScatterStartOp::getOperationName();
  if (isa<AllToAllOp>(op))
    return AllToAllStartOp::getOperationName();
  if (isa<PermuteOp>(op))
    return PermuteStartOp::getOperationName();
  return {};
}

/// The op of the block in which the result is first read; null if it is not.
static Operation *firstReader(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
    if (here && (!first || here->isBeforeInBlock(first)))
      first = here;
  }
  return first;
}

/// The op that the start comes after; null for the beginning of the block.
static Operation *lastBefore(Operation *op) {
  Operation *source = op->getOperand(0).getDefiningOp();
  Operation *last =
      source && source->getBlock() == op->getBlock() ? source : nullptr;
  // Starts that are there already keep their places before this one.
  Operation *next = last ? last->getNextNode() : &op->getBlock()->front();
  while (next != op &&
         isa<AllGatherStartOp, AllReduceStartOp, ReduceScatterStartOp,
             AllToAllStartOp, PermuteStartOp>(next)) {
    last = next;
    next = next->getNextNode();
  }
  return last;
}

namespace {
struct OverlapCollectivesPass final
    : hypershard::impl::OverlapCollectivesPassBase<OverlapCollectivesPass> {
  void runOnOperation() override;

private:
  void overlap(Operation *op, StringRef startName);
};
} // namespace

void OverlapCollectivesPass::overlap(Operation *op, StringRef startName) {
  Operation *reader = firstReader(op);
  Operation *before = lastBefore(op);
  Operation *afterStart =
      before ? before->getNextNode() : &op->getBlock()->front();
  if (!reader || (afterStart == op && op->getNextNode() == reader)) {
    ++numNothingToDo;
    return;
  }
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  OpBuilder builder(op->getContext());
  builder.setInsertionPoint(afterStart);
  OperationState state(op->getLoc(), startName, op->getOperands(),
                       {FutureType::get(op->getContext(), type)},
                       op->getAttrs());
  Operation *start = builder.create(state);
  builder.setInsertionPoint(reader);
  Value done = DoneOp::create(builder, op->getLoc(), type, start->getResult(0));
  op->replaceAllUsesWith(ValueRange(done));
  op->erase();
  ++numStarted;
}

void OverlapCollectivesPass::runOnOperation() {
  SmallVector<std::pair<Operation *, StringRef>> collectives;
  getOperation().walk([&](Operation *op) {
    StringRef start = startNameOf(op);
    if (!start.empty() && !op->hasAttr(HyperShardDialect::kShardingAttrName))
      collectives.push_back({op, start});
  });
  for (auto [op, start] : collectives)
    overlap(op, start);
}
