//===- OffloadOps.cpp - verifiers and canonicalizations -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Offload/Offload.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

#define GET_OP_CLASSES
#include "dialects/Offload/OffloadOps.cpp.inc"

static LogicalResult verifyWaits(Operation *op) {
  if (llvm::count_if(op->getUsers(), llvm::IsaPred<WaitOp>) > 1)
    return op->emitOpError("expected one offload.wait for its future but got "
                           "several; use the value of the first");
  return success();
}

/// What both copies ask for.
template <typename OpTy>
static LogicalResult verifyCopy(OpTy op) {
  auto source = cast<RankedTensorType>(op.getSource().getType());
  RankedTensorType target = op.getFuture().getType().getValueType();
  if (source.getShape() != target.getShape() ||
      source.getElementType() != target.getElementType())
    return op.emitOpError()
           << "expected shape and element type to stay but got " << source
           << " and " << target;
  return verifyWaits(op);
}

/// The device's own memory has no name here.
static Movement describeCopy(Type source, RankedTensorType target) {
  Movement movement;
  movement.kind = Movement::Kind::Copy;
  movement.bytes = byteSize(target);
  if (TierAttr tier = offload::getTier(source))
    movement.from = tier.getName().getValue();
  if (TierAttr tier = offload::getTier(target))
    movement.to = tier.getName().getValue();
  return movement;
}

Movement PrefetchOp::getMovement() {
  return describeCopy(getSource().getType(),
                      getFuture().getType().getValueType());
}
Movement StoreOp::getMovement() {
  return describeCopy(getSource().getType(),
                      getFuture().getType().getValueType());
}

Movement PrefetchRowsOp::getMovement() {
  return describeCopy(getTable().getType(),
                      getFuture().getType().getValueType());
}

OpCost PrefetchRowsOp::getCost() { return OpCost(); }
OpCost PrefetchOp::getCost() { return OpCost(); }
OpCost StoreOp::getCost() { return OpCost(); }
OpCost WaitOp::getCost() { return OpCost(); }
OpCost DetachOp::getCost() { return OpCost(); }

LogicalResult PrefetchOp::verify() {
  if (!offload::getTier(getSource().getType()))
    return emitOpError() << "expected a source in a tier but got "
                         << getSource().getType() << ", which is on the device";
  RankedTensorType target = getFuture().getType().getValueType();
  if (TierAttr tier = offload::getTier(target))
    return emitOpError() << "expected a future on the device but got tier "
                         << tier.getName()
                         << "; copies between tiers go through "
                         << "the device";
  return verifyCopy(*this);
}

LogicalResult PrefetchRowsOp::verify() {
  auto table = cast<RankedTensorType>(getTable().getType());
  auto rows = cast<RankedTensorType>(getRows().getType());
  RankedTensorType target = getFuture().getType().getValueType();
  if (!offload::getTier(table))
    return emitOpError() << "expected a table in a tier but got " << table
                         << ", which is on the device";
  if (offload::getTier(rows) || offload::getTier(target))
    return emitOpError() << "expected indices and rows on the device but got "
                         << rows << " and " << target;
  if (table.getRank() == 0 || !rows.getElementType().isInteger(64))
    return emitOpError() << "expected a table with a dimension and indices of "
                         << "i64 but got " << table << " and " << rows;
  SmallVector<int64_t> shape(rows.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  if (target.getShape() != ArrayRef(shape) ||
      target.getElementType() != table.getElementType())
    return emitOpError() << "expected "
                         << RankedTensorType::get(shape, table.getElementType())
                         << " but got " << target;
  return verifyWaits(*this);
}

LogicalResult StoreOp::verify() {
  if (TierAttr tier = offload::getTier(getSource().getType()))
    return emitOpError() << "expected a source on the device but got tier "
                         << tier.getName();
  if (!offload::getTier(getFuture().getType().getValueType()))
    return emitOpError("expected a future in a tier but got one on the device");
  return verifyCopy(*this);
}

/// wait(store(wait(prefetch %p))) in %p's tier is %p.
static LogicalResult reuseCopyBelow(StoreOp op, PatternRewriter &rewriter) {
  auto arrived = op.getSource().getDefiningOp<WaitOp>();
  if (!arrived)
    return failure();
  auto prefetch = arrived.getFuture().getDefiningOp<PrefetchOp>();
  if (!prefetch ||
      prefetch.getSource().getType() != op.getFuture().getType().getValueType())
    return failure();
  SmallVector<Operation *> waits(op.getFuture().getUsers());
  if (!llvm::all_of(waits, llvm::IsaPred<WaitOp>))
    return failure();
  for (Operation *wait : waits)
    rewriter.replaceOp(wait, prefetch.getSource());
  rewriter.eraseOp(op);
  return success();
}

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *) {
  patterns.add(reuseCopyBelow);
}

LogicalResult WaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       ValueRange operands, DictionaryAttr,
                                       OpaqueProperties, RegionRange,
                                       SmallVectorImpl<Type> &types) {
  types.push_back(cast<FutureType>(operands[0].getType()).getValueType());
  return success();
}

LogicalResult DetachOp::verify() {
  if (TierAttr tier = offload::getTier(getValue().getType()))
    return emitOpError() << "expected a value on the device but got tier "
                         << tier.getName();
  for (Operation *user : getValue().getUsers()) {
    Operation *inBlock = (*this)->getBlock()->findAncestorOpInBlock(*user);
    if (!inBlock || inBlock == getOperation() ||
        inBlock->isBeforeInBlock(*this))
      continue;
    InFlightDiagnostic diagnostic =
        emitOpError("expected no use of the value after its residency ends");
    diagnostic.attachNote(user->getLoc())
        << "it is used here; prefetch it again, or detach it later";
    return diagnostic;
  }
  return success();
}
