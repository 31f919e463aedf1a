//===- BufferAccess.cpp - which bytes an op reads and writes --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//   1. A buffer is followed through views to its root. A `memref.view` at a
//      constant offset is that part of its source, other views count as all of
//      it.
//   2. An op is asked for its effects (MemoryEffectOpInterface). One that does
//      not say reads and writes all buffers that its operands come from, also
//      through pointers. Allocations touch nothing, deallocations write.
//   3. A call does to its operands what its function does to its arguments:
//      what `stream.access` says of them, or else what the body does.
//
// Cost: linear in ops; a function is summarised once.
// Limits: two arguments of a function are taken for different memory, which
//   bufferization sees to where one of them is written.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/BufferAccess.h"

#include "dialects/Stream/Stream.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::hyperparallel;

static std::optional<int64_t> staticBytes(MemRefType type) {
  if (!type.hasStaticShape() || !type.getElementType().isIntOrIndexOrFloat())
    return std::nullopt;
  Type element = type.getElementType();
  int64_t width =
      element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
  return type.getNumElements() * width;
}

static bool isFunctionArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner()->isEntryBlock() &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

BufferPart hyperparallel::getBufferPart(Value buffer) {
  while (true) {
    Operation *op = buffer.getDefiningOp();
    if (isFunctionArgument(buffer) ||
        isa_and_nonnull<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp>(
            op))
      return {buffer};
    auto view = dyn_cast_or_null<ViewLikeOpInterface>(op);
    if (!view)
      return {};
    if (auto part = dyn_cast<memref::ViewOp>(op)) {
      BufferPart source = getBufferPart(part.getSource());
      APInt shift;
      std::optional<int64_t> bytes = staticBytes(part.getType());
      if (source.root && bytes &&
          matchPattern(part.getByteShift(), m_ConstantInt(&shift)))
        return {source.root, source.from + shift.getSExtValue(),
                source.from + shift.getSExtValue() + *bytes};
      return source;
    }
    buffer = view.getViewSource();
  }
}

/// The buffers that the values are, or are computed from.
static void findBuffers(ValueRange values, SmallVectorImpl<Value> &buffers) {
  SmallVector<Value> worklist(values);
  llvm::DenseSet<Value> seen(worklist.begin(), worklist.end());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (isa<BaseMemRefType>(value.getType())) {
      buffers.push_back(value);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!op || !isMemoryEffectFree(op))
      continue;
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second)
        worklist.push_back(operand);
  }
}

/// What is never written needs no order.
static bool isConstant(const BufferPart &part) {
  return part.root &&
         isa_and_nonnull<memref::GetGlobalOp>(part.root.getDefiningOp());
}

static void add(Value buffer, bool writes,
                SmallVectorImpl<BufferAccess> &accesses) {
  BufferPart part = getBufferPart(buffer);
  if (!isConstant(part))
    accesses.push_back({part, writes});
}

const BufferAccesses::Summary &
BufferAccesses::summarize(FunctionOpInterface function) {
  auto [known, isNew] = functions.try_emplace(function);
  if (!isNew)
    return known->second;
  Summary summary;
  summary.arguments.resize(function.getNumArguments());
  bool isTold = false;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto access = function.getArgAttrOfType<StringAttr>(
            i, stream::StreamDialect::kAccessAttrName)) {
      isTold = true;
      summary.arguments[i].writes = access.getValue() == "write";
      summary.arguments[i].reads = !summary.arguments[i].writes;
    }
  if (!isTold && function.isExternal())
    for (ArgumentUse &use : summary.arguments)
      use = {true, true};
  if (!isTold && !function.isExternal())
    for (Block &block : function.getFunctionBody())
      for (Operation &op : block)
        for (const BufferAccess &access : get(&op)) {
          auto argument = dyn_cast_or_null<BlockArgument>(access.part.root);
          if (!access.part.root)
            summary.isOpaque = true;
          else if (argument && isFunctionArgument(argument))
            (access.writes ? summary.arguments[argument.getArgNumber()].writes
                           : summary.arguments[argument.getArgNumber()].reads) =
                true;
        }
  return functions[function] = std::move(summary);
}

void BufferAccesses::addCall(Operation *op,
                             SmallVectorImpl<BufferAccess> &accesses) {
  auto call = cast<CallOpInterface>(op);
  auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  auto callee =
      symbol ? symbols.lookupNearestSymbolFrom<FunctionOpInterface>(op, symbol)
             : FunctionOpInterface();
  // A pointer tells nothing of what is done to it.
  bool isOpaque = !callee || !callee.getFunctionBody().getParentOp() ||
                  llvm::any_of(op->getOperands(), [](Value operand) {
                    return !isa<BaseMemRefType>(operand.getType()) &&
                           !operand.getType().isIntOrIndexOrFloat();
                  });
  SmallVector<Value> buffers;
  if (isOpaque) {
    findBuffers(op->getOperands(), buffers);
    for (Value buffer : buffers) {
      add(buffer, /*writes=*/false, accesses);
      add(buffer, /*writes=*/true, accesses);
    }
    return;
  }
  const Summary &summary = summarize(callee);
  if (summary.isOpaque)
    accesses.push_back({BufferPart(), /*writes=*/true});
  for (auto [operand, use] :
       llvm::zip_equal(call.getArgOperands(), summary.arguments)) {
    if (!isa<BaseMemRefType>(operand.getType()))
      continue;
    if (use.reads)
      add(operand, /*writes=*/false, accesses);
    if (use.writes)
      add(operand, /*writes=*/true, accesses);
  }
}

void BufferAccesses::addOp(Operation *op,
                           SmallVectorImpl<BufferAccess> &accesses) {
  if (isa<memref::AllocOp, memref::AllocaOp>(op) || isMemoryEffectFree(op))
    return;
  if (isa<CallOpInterface>(op))
    return addCall(op, accesses);
  SmallVector<Value> buffers;
  if (auto effects = dyn_cast<MemoryEffectOpInterface>(op)) {
    SmallVector<MemoryEffects::EffectInstance> instances;
    effects.getEffects(instances);
    for (const MemoryEffects::EffectInstance &effect : instances) {
      Value value = effect.getValue();
      if (!value || isa<MemoryEffects::Allocate>(effect.getEffect()))
        continue;
      buffers.clear();
      findBuffers(value, buffers);
      for (Value buffer : buffers)
        add(buffer, !isa<MemoryEffects::Read>(effect.getEffect()), accesses);
    }
    return;
  }
  if (op->getNumRegions() && op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
    return;
  findBuffers(op->getOperands(), buffers);
  for (Value buffer : buffers) {
    add(buffer, /*writes=*/false, accesses);
    add(buffer, /*writes=*/true, accesses);
  }
}

SmallVector<BufferAccess> BufferAccesses::get(Operation *op) {
  SmallVector<BufferAccess> accesses;
  addOp(op, accesses);
  if (!op->getNumRegions() || isa<FunctionOpInterface>(op))
    return accesses;
  op->walk([&](Operation *inner) {
    if (inner != op)
      addOp(inner, accesses);
  });
  // What is made inside is gone afterwards.
  llvm::erase_if(accesses, [&](const BufferAccess &access) {
    Value root = access.part.root;
    return root && op->isAncestor(root.getParentRegion()->getParentOp()) &&
           !isFunctionArgument(root);
  });
  return accesses;
}
