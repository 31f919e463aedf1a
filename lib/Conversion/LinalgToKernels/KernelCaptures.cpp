//===- KernelCaptures.cpp - What a kernel function is given ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToKernels/KernelCaptures.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

std::optional<SmallVector<bool>> getFixedPositions(memref::AllocOp alloc,
                                                   const KernelGroup &group) {
  MemRefType type = alloc.getType();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return std::nullopt;
  std::optional<SmallVector<bool>> fixed;
  // Position of each outer loop in the index list; the same for all uses.
  SmallVector<std::optional<size_t>> places(group.getNumOuterLoops());
  bool first = true;
  for (Operation *user : alloc->getUsers()) {
    const auto *member = llvm::find_if(group.members, [&](KernelMember m) {
      return m.op.getOperation() == user;
    });
    if (member == group.members.end())
      return std::nullopt;
    LinalgOp op = member->op;
    for (OpOperand &operand : op->getOpOperands()) {
      if (operand.get() != alloc.getResult())
        continue;
      AffineMap map = op.getMatchingIndexingMap(&operand);
      for (auto [t, loop] : llvm::enumerate(member->outer)) {
        AffineExpr dim = getAffineDimExpr(loop, map.getContext());
        const AffineExpr *place = llvm::find(map.getResults(), dim);
        if (place == map.getResults().end())
          return std::nullopt;
        size_t position = place - map.getResults().begin();
        if (!first && places[t] != position)
          return std::nullopt;
        places[t] = position;
      }
      first = false;
    }
  }
  if (first)
    return std::nullopt;
  fixed.emplace(type.getRank(), false);
  for (std::optional<size_t> place : places)
    if (place)
      (*fixed)[*place] = true;
  return fixed;
}

SmallVector<LocalBuffer> findLocalBuffers(const KernelGroup &group) {
  SetVector<Operation *> candidates;
  for (const KernelMember &member : group.members)
    for (Value operand : member.op->getOperands())
      if (auto alloc = operand.getDefiningOp<memref::AllocOp>())
        candidates.insert(alloc);
  SmallVector<LocalBuffer> found;
  for (Operation *candidate : candidates) {
    auto alloc = cast<memref::AllocOp>(candidate);
    auto fixed = getFixedPositions(alloc, group);
    MemRefType type = alloc.getType();
    if (!fixed || !type.getElementType().isIntOrIndexOrFloat())
      continue;
    SmallVector<int64_t> shape;
    for (auto [size, isFixed] : llvm::zip_equal(type.getShape(), *fixed))
      if (!isFixed)
        shape.push_back(size);
    auto part = MemRefType::get(shape, type.getElementType());
    found.push_back(
        {alloc, std::move(*fixed), part,
         part.getNumElements() * getElementBytes(type.getElementType())});
  }
  return found;
}

/// True for ops that cost nothing and are made anew inside of a kernel.
static bool isRematerialised(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<memref::GetGlobalOp>(op))
    return true;
  return isa<ViewLikeOpInterface, memref::CastOp>(op) &&
         op->getNumRegions() == 0 && op->getNumResults() == 1 &&
         isMemoryEffectFree(op);
}

static bool isBarePointer(MemRefType type) {
  return type.hasStaticShape() && type.getLayout().isIdentity();
}

Value KernelCaptures::addArgument(Value outside) {
  values.push_back(outside);
  Block &entry = function.front();
  return entry.addArgument(outside.getType(), loc);
}

/// A buffer whose layout a plain pointer does not carry travels as base,
/// offset, sizes and strides.
Value KernelCaptures::rebuildStrided(Value root) {
  auto type = cast<MemRefType>(root.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(callSite, loc, root);
  Value base = addArgument(metadata.getBaseBuffer());
  Value offset = addArgument(metadata.getOffset());
  SmallVector<OpFoldResult> sizes, strides;
  for (Value size : metadata.getSizes())
    sizes.push_back(addArgument(size));
  for (Value stride : metadata.getStrides())
    strides.push_back(addArgument(stride));
  int64_t rank = type.getRank();
  auto dynamic = MemRefType::get(
      SmallVector<int64_t>(rank, ShapedType::kDynamic), type.getElementType(),
      StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic,
                             SmallVector<int64_t>(rank, ShapedType::kDynamic)),
      type.getMemorySpace());
  Value view = memref::ReinterpretCastOp::create(
      builder, loc, dynamic, base, OpFoldResult(offset), sizes, strides);
  return memref::CastOp::create(builder, loc, type, view);
}

Value KernelCaptures::capture(Value outside) {
  if (Value known = mapping.lookupOrNull(outside))
    return known;
  if (Operation *def = outside.getDefiningOp(); def && isRematerialised(def)) {
    for (Value operand : def->getOperands())
      capture(operand);
    builder.clone(*def, mapping);
    return mapping.lookup(outside);
  }
  auto type = dyn_cast<MemRefType>(outside.getType());
  Value inside = type && !isBarePointer(type) ? rebuildStrided(outside)
                                              : addArgument(outside);
  mapping.map(outside, inside);
  return inside;
}

void KernelCaptures::captureOperands(const KernelGroup &group,
                                     llvm::function_ref<bool(Value)> isLocal) {
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    for (Value operand : op->getOperands())
      if (!isLocal(operand))
        capture(operand);
    op.getBlock()->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (!op->getRegion(0).isAncestor(operand.getParentRegion()) &&
            !isLocal(operand))
          capture(operand);
    });
  }
}

void KernelCaptures::markDistinctBuffers() {
  SmallVector<Value> roots;
  for (Value captured : values)
    if (isa<MemRefType>(captured.getType()))
      roots.push_back(getBufferRoot(captured));
  for (auto [number, captured] : llvm::enumerate(values)) {
    if (!isa<MemRefType>(captured.getType()))
      continue;
    Value root = getBufferRoot(captured);
    if (llvm::count_if(roots,
                       [&](Value other) { return mayAlias(root, other); }) == 1)
      function.setArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName(),
                          builder.getUnitAttr());
  }
}

} // namespace mlir::hyperparallel
