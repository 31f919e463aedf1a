//===- InlineSegments.cpp - put segments back where they are called -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: calls of functions that are marked `hp.segment`. Out: their bodies in
//   place of the calls, which were each called once; no segment is left.
// Why: import makes a function of everything, so that a program can be split
//   over device groups at calls. A program that is not split is propagated and
//   fused better without the borders that no block needs.
// Cost: linear in the ops of segments.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "mlir/IR/SymbolTable.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_INLINESEGMENTSPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel::hypershard;

static constexpr StringLiteral kSegment = "hp.segment";

/// Moves the body of `segment` in front of its only call, and erases both.
static void inlineInto(func::CallOp call, func::FuncOp segment) {
  Block &body = segment.getBody().front();
  auto result = cast<func::ReturnOp>(body.getTerminator());
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), call.getOperands()))
    argument.replaceAllUsesWith(operand);
  call.replaceAllUsesWith(result.getOperands());
  result.erase();
  call->getBlock()->getOperations().splice(call->getIterator(),
                                           body.getOperations());
  call.erase();
  segment.erase();
}

namespace {
struct InlineSegmentsPass final
    : mlir::hyperparallel::hypershard::impl::InlineSegmentsPassBase<
          InlineSegmentsPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::MapVector<Operation *, SmallVector<func::CallOp, 1>> calls;
    getOperation().walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (callee && callee->hasAttr(kSegment))
        calls[callee].push_back(call);
    });
    for (auto &[function, callers] : calls) {
      auto segment = cast<func::FuncOp>(function);
      if (callers.size() == 1 && !segment.isExternal() &&
          segment.getBody().hasOneBlock() && segment.isPrivate() &&
          !segment->isAncestor(callers.front()))
        continue;
      segment.emitError("expected a segment to be a private function with a "
                        "body of one block that is called once but got ")
          << callers.size() << " calls of @" << segment.getSymName();
      return signalPassFailure();
    }
    for (auto &[function, callers] : calls) {
      inlineInto(callers.front(), cast<func::FuncOp>(function));
      ++numInlined;
    }
  }
};
} // namespace
