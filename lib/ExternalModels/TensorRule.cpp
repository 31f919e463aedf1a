//===- TensorRule.cpp - how the dimensions of tensor ops relate -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Reshapes share *compound* factors: 8 -> 2x4 is [i j] -> [i], [j]. Ops that
// cut or join along a dimension (slice, insert, pad, concat) have a Window
// factor there: split, each device's block of the result comes from a window of
// the operand that may lie on other devices. Size-1 dimensions have no factor.
// Cost: linear in the rank.
//===----------------------------------------------------------------------===//
#include "lib/ExternalModels/Rules.h"

using namespace mlir;
using namespace mlir::hyperparallel;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

//===----------------------------------------------------------------------===//
// Same dimensions on all sides
//===----------------------------------------------------------------------===//

ShardingRule mlir::hyperparallel::sameDimsRule(Operation *op) {
  ShardingRule rule;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type)
    return rule;
  SmallVector<SmallVector<unsigned, 2>, 4> dims;
  for (int64_t size : type.getShape()) {
    auto &dim = dims.emplace_back();
    if (size != 1)
      dim.push_back(rule.addFactor(size, ShapedType::isDynamic(size)
                                             ? FactorKind::NeedReplication
                                             : FactorKind::PassThrough));
  }
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()))
      rule.operands.push_back({operand.get(), {&operand}, dims});
  rule.results.push_back({op->getResult(0), {}, dims});
  return rule;
}

ShardingRule mlir::hyperparallel::generateRule(tensor::GenerateOp op) {
  ShardingRule rule = sameDimsRule(op);
  op.getBody().walk(
      [&](Operation *inner) { addWholeTensors(rule, op, inner); });
  return rule;
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

/// Walks both shapes from the major side, giving both what they have in common.
/// The parts of an expand or collapse always divide; a zero, or a dynamic size,
/// says nothing about where elements are.
ShardingRule mlir::hyperparallel::reshapeRule(Operation *op,
                                              ArrayRef<int64_t> from,
                                              ArrayRef<int64_t> to) {
  ShardingRule rule;
  rule.isAdditive = true;
  RuleTensor source{op->getOperand(0), {&op->getOpOperand(0)}, {}};
  RuleTensor result{op->getResult(0), {}, {}};
  source.dims.resize(from.size());
  result.dims.resize(to.size());
  auto isPlain = [](int64_t size) { return size > 0; };
  if (!llvm::all_of(from, isPlain) || !llvm::all_of(to, isPlain)) {
    for (auto [dim, size] : llvm::enumerate(from))
      source.dims[dim] = {rule.addFactor(size, FactorKind::NeedReplication)};
    for (auto [dim, size] : llvm::enumerate(to))
      result.dims[dim] = {rule.addFactor(size, FactorKind::NeedReplication)};
  } else {
    size_t i = 0, j = 0;
    int64_t a = 1, b = 1; // what is left of from[i - 1] and to[j - 1]
    while (true) {
      while (a == 1 && i < from.size())
        a = from[i++];
      while (b == 1 && j < to.size())
        b = to[j++];
      if (a == 1 || b == 1)
        break;
      int64_t size = std::min(a, b);
      bool divides = a % size == 0 && b % size == 0;
      unsigned factor =
          rule.addFactor(size, divides ? FactorKind::PassThrough
                                       : FactorKind::NeedReplication);
      source.dims[i - 1].push_back(factor);
      result.dims[j - 1].push_back(factor);
      if (!divides)
        break;
      a /= size;
      b /= size;
    }
  }
  rule.operands.push_back(std::move(source));
  rule.results.push_back(std::move(result));
  return rule;
}

//===----------------------------------------------------------------------===//
// Cutting and joining
//===----------------------------------------------------------------------===//

/// Does a slice take all of a dimension as it is?
static bool takesAll(OpFoldResult offset, OpFoldResult size,
                     OpFoldResult stride, int64_t dimSize) {
  return isConstantIntValue(offset, 0) && isConstantIntValue(stride, 1) &&
         isConstantIntValue(size, dimSize);
}

static bool isStatic(OpFoldResult offset, OpFoldResult size,
                     OpFoldResult stride) {
  return isa<Attribute>(offset) && isa<Attribute>(size) &&
         isa<Attribute>(stride);
}

ShardingRule mlir::hyperparallel::extractSliceRule(tensor::ExtractSliceOp op) {
  ShardingRule rule;
  rule.isAdditive = true;
  RuleTensor source{op.getSource(), {&op.getSourceMutable()}, {}};
  RuleTensor result{op.getResult(), {}, {}};
  llvm::SmallBitVector dropped = op.getDroppedDims();
  auto offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(),
       strides = op.getMixedStrides();
  for (auto [dim, dimSize] : llvm::enumerate(shapeOf(op.getSource()))) {
    auto &factors = source.dims.emplace_back();
    if (dropped.test(dim)) {
      if (dimSize != 1)
        factors = {rule.addFactor(dimSize, FactorKind::NeedReplication)};
      continue;
    }
    int64_t resultSize = op.getType().getDimSize(result.dims.size());
    auto &resultFactors = result.dims.emplace_back();
    if (dimSize == 1 && resultSize == 1)
      continue;
    FactorKind kind =
        takesAll(offsets[dim], sizes[dim], strides[dim], dimSize)
            ? FactorKind::PassThrough
        : isStatic(offsets[dim], sizes[dim], strides[dim]) && resultSize > 1
            ? FactorKind::Window
            : FactorKind::NeedReplication;
    factors = {rule.addFactor(resultSize, kind)};
    resultFactors = factors;
  }
  rule.operands.push_back(std::move(source));
  rule.results.push_back(std::move(result));
  return rule;
}

ShardingRule mlir::hyperparallel::insertSliceRule(tensor::InsertSliceOp op) {
  ShardingRule rule;
  rule.isAdditive = true;
  RuleTensor source{op.getSource(), {&op.getSourceMutable()}, {}};
  RuleTensor dest{op.getDest(), {&op.getDestMutable()}, {}};
  llvm::SmallBitVector dropped = op.getDroppedDims();
  auto offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(),
       strides = op.getMixedStrides();
  for (auto [dim, dimSize] : llvm::enumerate(shapeOf(op.getDest()))) {
    auto &factors = dest.dims.emplace_back();
    bool isUnitStride = isConstantIntValue(strides[dim], 1);
    if (dimSize != 1) {
      FactorKind kind =
          takesAll(offsets[dim], sizes[dim], strides[dim], dimSize)
              ? FactorKind::PassThrough
          : isStatic(offsets[dim], sizes[dim], strides[dim]) && isUnitStride
              ? FactorKind::Window
              : FactorKind::NeedReplication;
      factors = {rule.addFactor(dimSize, kind)};
    }
    if (dropped.test(dim))
      continue;
    int64_t sourceSize = shapeOf(op.getSource())[source.dims.size()];
    auto &sourceFactors = source.dims.emplace_back();
    if (sourceSize != 1)
      sourceFactors = factors;
  }
  RuleTensor result{op.getResult(), {}, dest.dims};
  rule.operands.push_back(std::move(source));
  rule.operands.push_back(std::move(dest));
  rule.results.push_back(std::move(result));
  return rule;
}

ShardingRule mlir::hyperparallel::padRule(tensor::PadOp op) {
  ShardingRule rule;
  RuleTensor source{op.getSource(), {&op.getSourceMutable()}, {}};
  RuleTensor result{op.getResult(), {}, {}};
  auto lows = op.getMixedLowPad(), highs = op.getMixedHighPad();
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getResult()))) {
    auto &factors = result.dims.emplace_back();
    auto &sourceFactors = source.dims.emplace_back();
    if (size == 1)
      continue;
    bool isUntouched =
        isConstantIntValue(lows[dim], 0) && isConstantIntValue(highs[dim], 0);
    bool isKnown = isa<Attribute>(lows[dim]) && isa<Attribute>(highs[dim]) &&
                   !ShapedType::isDynamic(size);
    factors = {rule.addFactor(size, isUntouched ? FactorKind::PassThrough
                                    : isKnown   ? FactorKind::Window
                                                : FactorKind::NeedReplication)};
    if (shapeOf(op.getSource())[dim] != 1)
      sourceFactors = factors;
  }
  rule.operands.push_back(std::move(source));
  rule.results.push_back(std::move(result));
  return rule;
}

ShardingRule mlir::hyperparallel::concatRule(tensor::ConcatOp op) {
  ShardingRule rule;
  rule.isAdditive = true;
  SmallVector<SmallVector<unsigned, 2>, 4> dims;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getResult()))) {
    auto &factors = dims.emplace_back();
    if (size != 1)
      factors = {rule.addFactor(size, dim == op.getDim()
                                          ? FactorKind::Window
                                          : FactorKind::PassThrough)};
  }
  for (OpOperand &operand : op->getOpOperands()) {
    RuleTensor tensor{operand.get(), {&operand}, dims};
    if (shapeOf(operand.get())[op.getDim()] == 1)
      tensor.dims[op.getDim()].clear();
    rule.operands.push_back(std::move(tensor));
  }
  rule.results.push_back({op.getResult(), {}, dims});
  return rule;
}
