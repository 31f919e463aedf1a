//===- FusedOps.cpp - verifiers -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Fused/Fused.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::hyperparallel::fused;

#define GET_OP_CLASSES
#include "dialects/Fused/FusedOps.cpp.inc"

static constexpr StringLiteral kNames[] = {"Q", "K", "V", "mask", "init"};

/// The loops that an operand must, and may, move with.
static std::pair<llvm::SmallBitVector, llvm::SmallBitVector>
getLoopsOf(AttentionOp op, StringRef name) {
  unsigned loops = op.getNumLoops();
  llvm::SmallBitVector must(loops), may(loops);
  may.set(0, op.getNumBatch());
  if (name == "Q" || name == "init")
    must = may;
  if (name == "Q" || name == "K")
    must.set(op.getLoopK());
  if (name == "V" || name == "init")
    must.set(op.getLoopE());
  if (name == "K" || name == "V")
    must.set(op.getLoopN());
  if (name == "Q" || name == "init")
    must.set(op.getLoopM());
  if (name == "mask")
    may.set(op.getLoopM()).set(op.getLoopN());
  may |= must;
  return {must, may};
}

/// C2 and C3 for one operand.
static LogicalResult verifyMap(AttentionOp op, StringRef name, Value operand,
                               AffineMap map, SmallVectorImpl<int64_t> &sizes) {
  auto type = cast<ShapedType>(operand.getType());
  if (!type.hasStaticShape())
    return op.emitOpError("expected static shapes but got ")
           << type << " for " << name;
  if (map.getNumDims() != sizes.size() || map.getNumSymbols() != 0 ||
      map.getNumResults() != static_cast<unsigned>(type.getRank()))
    return op.emitOpError("expected a map of ")
           << sizes.size() << " loops to the " << type.getRank()
           << " dimensions of " << name << " but got "
           << AffineMapAttr::get(map);
  auto [must, may] = getLoopsOf(op, name);
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), type.getShape())) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr);
        constant && constant.getValue() == 0 && size == 1)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || !may.test(dim.getPosition()))
      return op.emitOpError("expected each dimension of ")
             << name << " to move with a loop of its own but got "
             << AffineMapAttr::get(map);
    may.reset(dim.getPosition());
    must.reset(dim.getPosition());
    int64_t &known = sizes[dim.getPosition()];
    if (known >= 0 && known != size)
      return op.emitOpError("expected loop ")
             << dim.getPosition() << " to have one extent but got " << known
             << " and " << size << " (" << name << ")";
    known = size;
  }
  if (must.any())
    return op.emitOpError("expected ")
           << name << " to move with loop " << must.find_first() << " but got "
           << AffineMapAttr::get(map);
  return success();
}

LogicalResult AttentionOp::verify() {
  size_t count = getInputs().size();
  if (count < 3 || count > 4 || getIndexingMaps().size() != count + 1)
    return emitOpError("expected Q, K, V and perhaps a mask, with a map each "
                       "and one for the init, but got ")
           << count << " inputs and " << getIndexingMaps().size() << " maps";
  if (getNumLoops() < 4)
    return emitOpError("expected loops of the batch, m, n, k and e but got ")
           << getNumLoops() << " loops";
  SmallVector<int64_t> sizes(getNumLoops(), -1);
  Type element = getElementTypeOrSelf(getInit().getType());
  bool isOnTensors = isa<TensorType>(getInit().getType());
  for (auto [number, operand] : llvm::enumerate(getOperands())) {
    StringRef name = kNames[number == count ? 4 : number];
    if (isa<TensorType>(operand.getType()) != isOnTensors)
      return emitOpError("expected operands all to be tensors, or all buffers, "
                         "but got ")
             << operand.getType() << " for " << name;
    Type own = getElementTypeOrSelf(operand.getType());
    if (!isa<FloatType>(own) || (name != "mask" && own != element))
      return emitOpError("expected floats of the init's type ")
             << element << " but got " << own << " for " << name;
    if (failed(verifyMap(*this, name, operand, getMap(number), sizes)))
      return failure();
  }
  Type result = getResult() ? getResult().getType() : Type();
  if (result != (isOnTensors ? getInit().getType() : Type()))
    return emitOpError("expected a result of the init's type for tensors, and "
                       "none for buffers");
  return success();
}

SmallVector<int64_t> AttentionOp::getExtents() {
  SmallVector<int64_t> sizes(getNumLoops(), 1);
  for (auto [number, operand] : llvm::enumerate(getOperands()))
    for (auto [expr, size] :
         llvm::zip_equal(getMap(number).getResults(),
                         cast<ShapedType>(operand.getType()).getShape()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        sizes[dim.getPosition()] = size;
  return sizes;
}

void AttentionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (isa<TensorType>(getInit().getType()))
    return;
  for (OpOperand &input : getInputsMutable())
    effects.emplace_back(MemoryEffects::Read::get(), &input,
                         SideEffects::DefaultResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), &getInitMutable(),
                       SideEffects::DefaultResource::get());
}
