//===- VerifyTiers.cpp - only copies touch what is not on the device ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// An op may have a tensor in a tier as operand or result if it is of the
// offload dialect or hands values on unread: slices, calls, returns, and the
// ops and terminators of control flow. An argument and its next value are one
// storage, and so in one tier. One walk.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Offload/Passes.h"

#include "lib/Analysis/StateUpdates.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::hyperparallel::offload {
#define GEN_PASS_DEF_VERIFYTIERSPASS
#include "lib/Transforms/Offload/Passes.h.inc"
} // namespace mlir::hyperparallel::offload

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

/// A part of a tensor, which is where the tensor is.
static bool isSlice(Operation *op) {
  return isa<OffsetSizeAndStrideOpInterface>(op) && op->getNumOperands() == 1 &&
         op->getNumResults() == 1 &&
         offload::getTier(op->getOperand(0).getType()) ==
             offload::getTier(op->getResult(0).getType());
}

static bool handsOn(Operation *op) {
  return isSlice(op) || isa<OffloadDialect>(op->getDialect()) ||
         isa<CallOpInterface, RegionBranchOpInterface, BranchOpInterface>(op) ||
         op->hasTrait<OpTrait::ReturnLike>();
}

static std::string describeTier(TierAttr tier) {
  return tier ? "in tier \"" + tier.getName().str() + "\"" : "on the device";
}

/// What an argument gives its memory to is where the argument is.
static LogicalResult verifyUpdates(FunctionOpInterface function) {
  for (auto [result, argument] : llvm::enumerate(getUpdatedArguments(function)))
    if (argument) {
      TierAttr wanted =
          offload::getTier(function.getArgumentTypes()[*argument]);
      TierAttr got = offload::getTier(function.getResultTypes()[result]);
      if (wanted == got)
        continue;
      InFlightDiagnostic error =
          function.emitError("expected result ")
          << result << " to be " << describeTier(wanted) << ", as the argument "
          << function.getResultAttr(result, kUpdatesAttrName)
          << " that it updates, but got one " << describeTier(got);
      error.attachNote() << "move it there before it is returned, or take the "
                            "argument from where the result goes";
      return error;
    }
  return success();
}

static LogicalResult verifyOp(Operation *op) {
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    if (failed(verifyUpdates(function)))
      return failure();
  if (auto function = dyn_cast<FunctionOpInterface>(op);
      function && op->hasAttr(OffloadDialect::kMovesAttrName))
    return op->emitError("expected the moves of the plan to be written; run "
                         "offload-insert-transfers");
  if (handsOn(op))
    return success();
  for (OpOperand &operand : op->getOpOperands())
    if (TierAttr tier = offload::getTier(operand.get().getType()))
      return op->emitError("expected operand ")
             << operand.getOperandNumber()
             << " to be on the device but got one in tier " << tier.getName()
             << "; use the value of an offload.prefetch and offload.wait";
  for (OpResult result : op->getResults())
    if (TierAttr tier = offload::getTier(result.getType()))
      return op->emitError("expected result ")
             << result.getResultNumber()
             << " to be on the device but got one in tier " << tier.getName()
             << "; compute it there and move it by an offload.store";
  return success();
}

namespace {
struct VerifyTiersPass final
    : offload::impl::VerifyTiersPassBase<VerifyTiersPass> {
  void runOnOperation() override {
    WalkResult walked = getOperation().walk(
        [](Operation *op) { return WalkResult(verifyOp(op)); });
    if (walked.wasInterrupted())
      signalPassFailure();
    else
      markAllAnalysesPreserved();
  }
};
} // namespace
