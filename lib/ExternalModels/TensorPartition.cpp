//===- TensorPartition.cpp - local programs of tensor ops -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Ops that cut or join along a split dimension: device i makes elements
// [i*c, (i+1)*c) of the result, so that of the operand it needs a window whose
// place grows linearly with i. The window is exchanged, zeros lie outside the
// operand, and where something else than zero belongs there (the destination of
// an insert, the padding, the other operands of a concatenation) it is selected
// by global position. Selected, not added: -0.0 and NaN stay what they are.
//
//   concat 4 + 12 over 4 devices        | 4 | 4 4 4 |  c = 4
//     device 1: window of lhs  [4 - 0, 8 - 0)  all outside
//               window of rhs  [4 - 4, 8 - 4)  its first four
//
// An operand of size 1 along a split dimension is on every device and needs no
// exchange.
//===----------------------------------------------------------------------===//
#include "lib/ExternalModels/Partitions.h"
#include "lib/ExternalModels/TensorEdits.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::hyperparallel;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The factor of a dimension that has one.
static std::optional<unsigned> factorOf(const RuleTensor &tensor, int64_t dim) {
  if (tensor.dims[dim].empty())
    return std::nullopt;
  return tensor.dims[dim].front();
}

/// The factor of a dimension, if it is split.
static std::optional<unsigned> splitFactorOf(PartitionContext &context,
                                             const RuleTensor &tensor,
                                             int64_t dim) {
  std::optional<unsigned> factor = factorOf(tensor, dim);
  if (!factor || context.shardCount(*factor) == 1)
    return std::nullopt;
  return factor;
}

static bool isWindow(PartitionContext &context, unsigned factor) {
  return context.rule().factors[factor].kind == FactorKind::Window;
}

//===----------------------------------------------------------------------===//
// Same dimensions
//===----------------------------------------------------------------------===//

/// Right-hand sides that cannot fault, where the tensor is padding.
static Value clearDivisors(Operation *op, PartitionContext &context,
                           Value divisor) {
  const RuleTensor &result = context.rule().results[0];
  SmallVector<std::pair<int64_t, unsigned>> uneven;
  for (int64_t dim = 0, rank = result.dims.size(); dim < rank; ++dim)
    if (auto factor = splitFactorOf(context, result, dim))
      if (context.isUneven(*factor))
        uneven.push_back({dim, *factor});
  if (uneven.empty())
    return divisor;
  SmallVector<Value> offsets;
  for (auto [dim, factor] : uneven)
    offsets.push_back(context.offset(factor));
  auto element = [&](OpBuilder &b, Location loc, ValueRange position,
                     ValueRange elements) {
    Value inside;
    for (auto [place, offset] : llvm::zip_equal(uneven, offsets)) {
      Value index =
          arith::AddIOp::create(b, loc, position[place.first], offset);
      int64_t size = context.rule().factors[place.second].size;
      inside = andConditions(b, loc, inside, isBelow(b, loc, index, size));
    }
    Value one = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(elements[0].getType(), 1));
    return arith::SelectOp::create(b, loc, inside, elements[0], one)
        .getResult();
  };
  return mapElements(context.builder(), op->getLoc(), typeOf(divisor), divisor,
                     element);
}

LogicalResult
mlir::hyperparallel::partitionSameDims(Operation *op,
                                       PartitionContext &context) {
  OpBuilder &b = context.builder();
  IRMapping mapping = mapValuesFromOutside(
      op, [&](Value value) { return context.local(value); });
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp,
          math::IPowIOp>(op)) {
    Value divisor = op->getOperand(1);
    if (isa<RankedTensorType>(divisor.getType()))
      mapping.map(divisor, clearDivisors(op, context, mapping.lookup(divisor)));
  }
  Operation *local = b.clone(*op, mapping);
  for (auto [global, result] :
       llvm::zip_equal(op->getResults(), local->getResults())) {
    if (isa<RankedTensorType>(global.getType()))
      result.setType(context.localType(global));
    context.setResult(global, result);
  }
  return success();
}

LogicalResult
mlir::hyperparallel::partitionConstant(arith::ConstantOp op,
                                       PartitionContext &context) {
  OpBuilder &b = context.builder();
  Location loc = op.getLoc();
  RankedTensorType type = context.localType(op.getResult());
  if (auto splat = dyn_cast<SplatElementsAttr>(op.getValue())) {
    Value local = arith::ConstantOp::create(b, loc, splat.resizeSplat(type));
    context.setResult(op.getResult(), local);
    return success();
  }
  Value local = arith::ConstantOp::create(b, loc, op.getValue());
  const RuleTensor &result = context.rule().results[0];
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    auto factor = splitFactorOf(context, result, dim);
    sizes.push_back(b.getIndexAttr(type.getDimSize(dim)));
    offsets.push_back(factor ? OpFoldResult(context.offset(*factor))
                             : OpFoldResult(b.getIndexAttr(0)));
    if (factor)
      local = resizeDim(b, loc, local, dim,
                        type.getDimSize(dim) * context.shardCount(*factor));
  }
  local = tensor::ExtractSliceOp::create(b, loc, type, local, offsets, sizes,
                                         strides);
  context.setResult(op.getResult(), local);
  return success();
}

LogicalResult
mlir::hyperparallel::partitionGenerate(tensor::GenerateOp op,
                                       PartitionContext &context) {
  OpBuilder &b = context.builder();
  SmallVector<Value> offsets;
  const RuleTensor &result = context.rule().results[0];
  for (int64_t dim = 0, rank = result.dims.size(); dim < rank; ++dim) {
    auto factor = splitFactorOf(context, result, dim);
    offsets.push_back(factor ? context.offset(*factor) : Value());
  }
  IRMapping mapping = mapValuesFromOutside(
      op, [&](Value value) { return context.local(value); });
  auto local = cast<tensor::GenerateOp>(b.clone(*op, mapping));
  local.getResult().setType(context.localType(op.getResult()));
  OpBuilder body = OpBuilder::atBlockBegin(&local.getBody().front());
  for (auto [dim, offset] : llvm::enumerate(offsets)) {
    if (!offset)
      continue;
    // Padding is the last element again: whatever the body does, it can do.
    BlockArgument position = local.getBody().getArgument(dim);
    auto shifted = arith::AddIOp::create(body, op.getLoc(), position, offset);
    Value last = arith::ConstantIndexOp::create(
        body, op.getLoc(), op.getType().getDimSize(dim) - 1);
    Value global = arith::MinSIOp::create(body, op.getLoc(), shifted, last);
    position.replaceAllUsesExcept(global, shifted);
  }
  context.setResult(op.getResult(), local);
  return success();
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

LogicalResult mlir::hyperparallel::partitionReshape(Operation *op,
                                                    PartitionContext &context) {
  OpBuilder &b = context.builder();
  Value source = context.local(op->getOperand(0));
  RankedTensorType type = context.localType(op->getResult(0));
  Value local;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    local = tensor::ExpandShapeOp::create(b, op->getLoc(), type, source,
                                          expand.getReassociationIndices());
  else
    local = tensor::CollapseShapeOp::create(
        b, op->getLoc(), type, source,
        cast<tensor::CollapseShapeOp>(op).getReassociationIndices());
  context.setResult(op->getResult(0), local);
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

static OpFoldResult toLocal(PartitionContext &context, OpFoldResult value) {
  if (auto dynamic = dyn_cast<Value>(value))
    return context.local(dynamic);
  return value;
}

LogicalResult
mlir::hyperparallel::partitionExtractSlice(tensor::ExtractSliceOp op,
                                           PartitionContext &context) {
  OpBuilder &b = context.builder();
  Location loc = op.getLoc();
  Value source = context.local(op.getSource());
  const RuleTensor &tensor = context.rule().operands[0];
  SmallVector<OpFoldResult> offsets = op.getMixedOffsets(),
                            sizes = op.getMixedSizes(),
                            strides = op.getMixedStrides();
  for (int64_t dim = 0, rank = tensor.dims.size(); dim < rank; ++dim) {
    auto factor = splitFactorOf(context, tensor, dim);
    if (!factor) {
      offsets[dim] = toLocal(context, offsets[dim]);
      sizes[dim] = toLocal(context, sizes[dim]);
      strides[dim] = toLocal(context, strides[dim]);
      continue;
    }
    int64_t size = context.localSize(*factor);
    if (isWindow(context, *factor)) {
      int64_t stride = *getConstantIntValue(strides[dim]);
      int64_t extent = size == 0 ? 0 : (size - 1) * stride + 1;
      source = context.exchangeWindow(
          source, dim, *factor, op.getSourceType().getDimSize(dim),
          size * stride, *getConstantIntValue(offsets[dim]), extent);
    }
    offsets[dim] = b.getIndexAttr(0);
    sizes[dim] = b.getIndexAttr(size);
    if (size <= 1)
      strides[dim] = b.getIndexAttr(1);
  }
  RankedTensorType type = context.localType(op.getResult());
  bool takesAll = type == source.getType() &&
                  llvm::all_of(offsets, isZeroInteger) &&
                  llvm::all_of(strides, isOneInteger);
  Value local = source;
  if (!takesAll)
    local = tensor::ExtractSliceOp::create(b, loc, type, source, offsets, sizes,
                                           strides);
  context.setResult(op.getResult(), local);
  return success();
}

/// The source of an insert with all dimensions of the destination.
static Value withDroppedDims(OpBuilder &b, tensor::InsertSliceOp op,
                             Value source) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  RankedTensorType type = typeOf(source);
  SmallVector<int64_t> shape;
  int64_t next = 0;
  for (int64_t dim = 0; dim < op.getDestType().getRank(); ++dim)
    shape.push_back(dropped.test(dim) ? 1 : type.getDimSize(next++));
  auto full = RankedTensorType::get(shape, type.getElementType());
  if (full == type)
    return source;
  // Any grouping will do: the elements keep their order.
  SmallVector<ReassociationIndices> groups(type.getRank());
  int64_t group = -1;
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim) {
    if (!dropped.test(dim) && group + 1 < type.getRank())
      ++group;
    if (type.getRank() != 0)
      groups[std::max<int64_t>(group, 0)].push_back(dim);
  }
  return tensor::ExpandShapeOp::create(b, op.getLoc(), full, source, groups);
}

namespace {
/// lo <= global position < hi along a dimension that begins at `offset` here.
struct SplitRange {
  int64_t dim, lo, hi;
  Value offset;
};
} // namespace

static Value positionIn(OpBuilder &b, Location loc, ValueRange position,
                        ArrayRef<SplitRange> ranges) {
  Value inside;
  for (const SplitRange &range : ranges) {
    Value index = position[range.dim];
    if (range.offset)
      index = arith::AddIOp::create(b, loc, index, range.offset);
    inside = andConditions(b, loc, inside,
                           isInRange(b, loc, index, range.lo, range.hi));
  }
  return inside;
}

LogicalResult
mlir::hyperparallel::partitionInsertSlice(tensor::InsertSliceOp op,
                                          PartitionContext &context) {
  OpBuilder &b = context.builder();
  Location loc = op.getLoc();
  RankedTensorType type = context.localType(op.getResult());
  Value source = withDroppedDims(b, op, context.local(op.getSource()));
  Value dest = context.local(op.getDest());
  const RuleTensor &tensor = context.rule().operands[1];
  SmallVector<OpFoldResult> offsets = op.getMixedOffsets(),
                            sizes = op.getMixedSizes(),
                            strides = op.getMixedStrides();
  SmallVector<SplitRange> ranges;
  SmallVector<int64_t> shape(typeOf(source).getShape());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    auto factor = splitFactorOf(context, tensor, dim);
    if (!factor) {
      offsets[dim] = toLocal(context, offsets[dim]);
      sizes[dim] = toLocal(context, sizes[dim]);
      strides[dim] = toLocal(context, strides[dim]);
      continue;
    }
    int64_t block = context.localSize(*factor);
    if (isWindow(context, *factor)) {
      int64_t start = *getConstantIntValue(offsets[dim]);
      int64_t size = *getConstantIntValue(sizes[dim]);
      if (size != 1)
        source = context.exchangeWindow(source, dim, *factor, size, block,
                                        -start, block);
      ranges.push_back({dim, start, start + size, context.offset(*factor)});
    }
    shape[dim] = block;
    offsets[dim] = b.getIndexAttr(0);
    sizes[dim] = b.getIndexAttr(block);
  }
  auto first = [](OpBuilder &, Location, ValueRange, ValueRange elements) {
    return elements[0];
  };
  if (typeOf(source).getShape() != ArrayRef<int64_t>(shape))
    source = mapElements(b, loc, typeOf(source).clone(shape), source, first);
  Value local = tensor::InsertSliceOp::create(b, loc, source, dest, offsets,
                                              sizes, strides);
  if (!ranges.empty()) {
    auto element = [&](OpBuilder &body, Location at, ValueRange position,
                       ValueRange elements) {
      Value inside = positionIn(body, at, position, ranges);
      return arith::SelectOp::create(body, at, inside, elements[0], elements[1])
          .getResult();
    };
    local = mapElements(b, loc, type, {local, dest}, element);
  }
  context.setResult(op.getResult(), local);
  return success();
}

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

static bool isZero(Value value) {
  return value && (matchPattern(value, m_Zero()) ||
                   matchPattern(value, m_PosZeroFloat()));
}

/// The value that the body of a pad gives at a global position.
static Value paddingAt(OpBuilder &b, Location loc, tensor::PadOp op,
                       PartitionContext &context, ValueRange position,
                       ArrayRef<Value> offsets) {
  IRMapping mapping = mapValuesFromOutside(
      op, [&](Value value) { return context.local(value); });
  for (auto [dim, argument] :
       llvm::enumerate(op.getRegion().front().getArguments())) {
    Value index = position[dim];
    if (offsets[dim]) {
      index = arith::AddIOp::create(b, loc, index, offsets[dim]);
      Value last = arith::ConstantIndexOp::create(
          b, loc, op.getResultType().getDimSize(dim) - 1);
      index = arith::MinSIOp::create(b, loc, index, last);
    }
    mapping.map(argument, index);
  }
  for (Operation &inner : op.getRegion().front().without_terminator())
    b.clone(inner, mapping);
  auto yield = cast<tensor::YieldOp>(op.getRegion().front().getTerminator());
  return mapping.lookupOrDefault(yield.getValue());
}

LogicalResult mlir::hyperparallel::partitionPad(tensor::PadOp op,
                                                PartitionContext &context) {
  OpBuilder &b = context.builder();
  Location loc = op.getLoc();
  RankedTensorType type = context.localType(op.getResult());
  const RuleTensor &result = context.rule().results[0];
  SmallVector<OpFoldResult> lows = op.getMixedLowPad();
  auto isSplitWindow = [&](int64_t dim) {
    auto factor = splitFactorOf(context, result, dim);
    return factor && isWindow(context, *factor);
  };
  if (op.getConstantPaddingValue() &&
      llvm::none_of(llvm::seq<int64_t>(0, type.getRank()), isSplitWindow)) {
    IRMapping mapping = mapValuesFromOutside(
        op, [&](Value value) { return context.local(value); });
    auto local = cast<tensor::PadOp>(b.clone(*op, mapping));
    local.getResult().setType(type);
    context.setResult(op.getResult(), local);
    return success();
  }
  SmallVector<SplitRange> ranges;
  SmallVector<Value> offsets;
  Value local = context.local(op.getSource());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    auto factor = splitFactorOf(context, result, dim);
    int64_t size = op.getSourceType().getDimSize(dim);
    int64_t resultSize = op.getResultType().getDimSize(dim);
    offsets.push_back(factor ? context.offset(*factor) : Value());
    if (ShapedType::isDynamic(size) || ShapedType::isDynamic(resultSize) ||
        !getConstantIntValue(lows[dim]))
      return op->emitOpError() << "cannot be split with a padding of "
                                  "dimension "
                               << dim << " that is not constant";
    int64_t low = *getConstantIntValue(lows[dim]);
    if (low < 0 || resultSize - size - low < 0)
      return op->emitOpError()
             << "cannot be split with a negative padding of dimension " << dim;
    if (size == resultSize)
      continue;
    ranges.push_back({dim, low, low + size, offsets.back()});
    int64_t block = type.getDimSize(dim);
    if (!factor)
      local = windowDim(b, loc, local, dim, -low, block);
    else if (size != 1)
      local =
          context.exchangeWindow(local, dim, *factor, size, block, -low, block);
  }
  if (!isZero(op.getConstantPaddingValue()) || local.getType() != type) {
    auto element = [&](OpBuilder &body, Location at, ValueRange position,
                       ValueRange elements) {
      Value inside = positionIn(body, at, position, ranges);
      Value padding = paddingAt(body, at, op, context, position, offsets);
      return arith::SelectOp::create(body, at, inside, elements[0], padding)
          .getResult();
    };
    local = mapElements(b, loc, type, local, element);
  }
  context.setResult(op.getResult(), local);
  return success();
}

//===----------------------------------------------------------------------===//
// Concat
//===----------------------------------------------------------------------===//

LogicalResult mlir::hyperparallel::partitionConcat(tensor::ConcatOp op,
                                                   PartitionContext &context) {
  OpBuilder &b = context.builder();
  Location loc = op.getLoc();
  int64_t dim = op.getDim();
  RankedTensorType type = context.localType(op.getResult());
  auto factor = splitFactorOf(context, context.rule().results[0], dim);
  if (!factor) {
    SmallVector<Value> operands;
    for (Value operand : op.getInputs())
      operands.push_back(context.local(operand));
    Value local = tensor::ConcatOp::create(b, loc, type, dim, operands);
    context.setResult(op.getResult(), local);
    return success();
  }
  int64_t block = context.localSize(*factor);
  Value offset = context.offset(*factor);
  SmallVector<Value> windows;
  SmallVector<int64_t> ends;
  int64_t start = 0;
  for (Value operand : op.getInputs()) {
    int64_t size = typeOf(operand).getDimSize(dim);
    if (size == 0)
      continue;
    Value local = context.local(operand);
    if (size != 1)
      local = context.exchangeWindow(local, dim, *factor, size, block, -start,
                                     block);
    windows.push_back(local);
    ends.push_back(start += size);
  }
  auto element = [&](OpBuilder &body, Location at, ValueRange position,
                     ValueRange elements) {
    Value index = arith::AddIOp::create(body, at, position[dim], offset);
    Value value = elements.back();
    for (size_t i = windows.size() - 1; i-- > 0;)
      value = arith::SelectOp::create(
          body, at, isBelow(body, at, index, ends[i]), elements[i], value);
    return value;
  };
  context.setResult(op.getResult(),
                    mapElements(b, loc, type, windows, element));
  return success();
}
