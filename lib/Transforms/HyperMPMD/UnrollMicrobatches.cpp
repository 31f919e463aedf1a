//===- UnrollMicrobatches.cpp - a copy of the loop for each microbatch ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: @main, where the loop over microbatches is an scf.for with
// hp.microbatches and constant bounds. Out: its body as often as it runs, one
// after the other; calls say which microbatch they are of. What is carried from
// one to the next (sums of gradients) becomes plain values.
//
// Bodies consist of calls and glue, so that the copies are small: functions are
// shared. Cost: linear in the result.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_UNROLLMICROBATCHESPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
struct UnrollMicrobatchesPass
    : hypermpmd::impl::UnrollMicrobatchesPassBase<UnrollMicrobatchesPass> {
  using UnrollMicrobatchesPassBase::UnrollMicrobatchesPassBase;

  LogicalResult unroll(scf::ForOp loop);
  void runOnOperation() override;
};
} // namespace

LogicalResult UnrollMicrobatchesPass::unroll(scf::ForOp loop) {
  std::optional<int64_t> low = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> high = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!low || !high || !step || *step < 1)
    return loop.emitOpError("expected constant bounds of the loop over "
                            "microbatches");
  SmallVector<Value> carried(loop.getInitArgs());
  OpBuilder builder(loop);
  int64_t microbatch = 0;
  for (int64_t index = *low; index < *high; index += *step, ++microbatch) {
    IRMapping mapping;
    Value number = arith::ConstantOp::create(
        builder, loop.getLoc(),
        builder.getIntegerAttr(loop.getInductionVar().getType(), index));
    mapping.map(loop.getInductionVar(), number);
    mapping.map(loop.getRegionIterArgs(), carried);
    for (Operation &op : loop.getBody()->without_terminator()) {
      Operation *copy = builder.clone(op, mapping);
      if (copy->hasAttr("hp.path"))
        copy->setAttr(HyperMPMDDialect::kMicrobatchAttrName,
                      builder.getI64IntegerAttr(microbatch));
    }
    for (auto [slot, value] : llvm::zip_equal(
             carried, loop.getBody()->getTerminator()->getOperands()))
      slot = mapping.lookupOrDefault(value);
  }
  // A segment is called once; these are not any more.
  if (microbatch > 1)
    for (auto call : loop.getBody()->getOps<func::CallOp>())
      if (auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
              call, call.getCalleeAttr()))
        callee->removeAttr("hp.segment");
  loop.replaceAllUsesWith(carried);
  loop.erase();
  numMicrobatches += microbatch;
  return success();
}

void UnrollMicrobatchesPass::runOnOperation() {
  FailureOr<func::FuncOp> main = getEntry(getOperation());
  if (failed(main))
    return signalPassFailure();
  SmallVector<scf::ForOp> loops;
  for (auto loop : main->getBody().front().getOps<scf::ForOp>())
    if (loop->hasAttr("hp.microbatches"))
      loops.push_back(loop);
  for (scf::ForOp loop : loops)
    if (failed(unroll(loop)))
      return signalPassFailure();
}
