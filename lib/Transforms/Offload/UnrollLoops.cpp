//===- UnrollLoops.cpp - iterations as tasks ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In:  a fused local program, before it is planned. A loop is one op to the
//   planner: what it carries and all that it reads stays while it runs.
// Out: the same values. Loops of the entry over tensors, of a known number of
//   iterations, are these iterations, so that what one of them makes may leave
//   before the next, and come back for whichever wants it.
//
//   1. A loop is unrolled whole; calls in it stay calls, whose code there is
//      once.
//   2. A slice that is put into a tensor and taken out again is handed over
//      directly, past slices that lie elsewhere: what was one stack of saved
//      values is then as many values.
//
//   for i: s[i] = f(i)                   s0 = f(0), s1 = f(1), s2 = f(2)
//   for i: g = b(s[n-1-i], g)    ──▶     g0 = b(s2, g), g1 = b(s1, g0), …
//
// Cost: linear in the iterations' ops, and in slices times the length of the
//   stack that they are in.
// Limits: a loop that would become more than `max-ops` ops, or whose number of
//   iterations is not known, stays one op, with a remark.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Offload/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::hyperparallel::offload {
#define GEN_PASS_DEF_UNROLLLOOPSPASS
#include "lib/Transforms/Offload/Passes.h.inc"
} // namespace mlir::hyperparallel::offload

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

//===----------------------------------------------------------------------===//
// Slices of stacks
//===----------------------------------------------------------------------===//

/// Whether the two slices of a tensor are known to have no element in common.
static bool areDisjoint(OffsetSizeAndStrideOpInterface a,
                        OffsetSizeAndStrideOpInterface b) {
  auto isKnown = [](ArrayRef<int64_t> values) {
    return llvm::none_of(values, ShapedType::isDynamic);
  };
  for (OffsetSizeAndStrideOpInterface slice : {a, b})
    if (!isKnown(slice.getStaticOffsets()) ||
        !isKnown(slice.getStaticSizes()) ||
        !llvm::all_equal(slice.getStaticStrides()) ||
        (!slice.getStaticStrides().empty() &&
         slice.getStaticStrides().front() != 1))
      return false;
  for (size_t dim = 0; dim < a.getStaticOffsets().size(); ++dim) {
    int64_t first = a.getStaticOffsets()[dim],
            other = b.getStaticOffsets()[dim];
    if (first + a.getStaticSizes()[dim] <= other ||
        other + b.getStaticSizes()[dim] <= first)
      return true;
  }
  return false;
}

/// Step 2.
static LogicalResult handOver(tensor::ExtractSliceOp taken,
                              PatternRewriter &rewriter) {
  Value whole = taken.getSource();
  while (auto put = whole.getDefiningOp<tensor::InsertSliceOp>()) {
    auto same = [](OpFoldResult a, OpFoldResult b) { return a == b; };
    if (taken.isSameAs(put, same) && taken.getType() == put.getSourceType()) {
      rewriter.replaceOp(taken, put.getSource());
      return success();
    }
    if (!areDisjoint(taken, put))
      break;
    whole = put.getDest();
  }
  if (whole == taken.getSource())
    return failure();
  rewriter.modifyOpInPlace(taken,
                           [&] { taken.getSourceMutable().assign(whole); });
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static bool isOverTensors(scf::ForOp loop) {
  return llvm::any_of(loop.getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

namespace {
struct UnrollLoopsPass final
    : offload::impl::UnrollLoopsPassBase<UnrollLoopsPass> {
  using UnrollLoopsPassBase::UnrollLoopsPassBase;

  /// Says why if the loop stays.
  bool mayUnroll(scf::ForOp loop) {
    std::optional<llvm::APInt> trips = loop.getStaticTripCount();
    if (!trips) {
      emitRemark(loop.getLoc(),
                 "offload: a loop stays one op: how often it runs "
                 "is known only then");
      return false;
    }
    if (trips->isZero())
      return false;
    int64_t ops = llvm::range_size(loop.getBody()->without_terminator());
    int64_t made = llvm::SaturatingMultiply<uint64_t>(
        trips->getLimitedValue(uint64_t(1) << 40), std::max<int64_t>(ops, 1));
    if (made > maxOps) {
      emitRemark(loop.getLoc(), "offload: a loop stays one op: its iterations "
                                "would be ")
          << made << " ops, more than " << int64_t(maxOps);
      return false;
    }
    return true;
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal() ||
        !function.getBody().hasOneBlock()) {
      getOperation().emitError("expected a function @")
          << entry << " with one block to unroll the loops of";
      return signalPassFailure();
    }
    int64_t unrolled = 0;
    SmallVector<scf::ForOp> loops(
        function.getBody().front().getOps<scf::ForOp>());
    llvm::SmallPtrSet<Operation *, 4> kept;
    // Loops in loops come up with their iterations.
    while (!loops.empty()) {
      bool isAnyUnrolled = false;
      for (scf::ForOp loop : loops) {
        if (kept.contains(loop) || !isOverTensors(loop))
          continue;
        if (!mayUnroll(loop) || failed(loopUnrollFull(loop))) {
          kept.insert(loop);
          ++numKept;
          continue;
        }
        isAnyUnrolled = true;
        ++unrolled;
      }
      loops.clear();
      if (isAnyUnrolled)
        llvm::append_range(loops,
                           function.getBody().front().getOps<scf::ForOp>());
    }
    numUnrolled += unrolled;
    if (unrolled == 0)
      return;
    RewritePatternSet patterns(&getContext());
    patterns.add(handOver);
    tensor::ExtractSliceOp::getCanonicalizationPatterns(patterns,
                                                        &getContext());
    tensor::InsertSliceOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(function, std::move(patterns)))) {
      function.emitError(
          "slices did not settle; please report this as a defect");
      signalPassFailure();
    }
  }
};
} // namespace
