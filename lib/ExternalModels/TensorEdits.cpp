//===- TensorEdits.cpp - cut, pad and mask local tensors ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/ExternalModels/TensorEdits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::hyperparallel;

//===----------------------------------------------------------------------===//
// One dimension
//===----------------------------------------------------------------------===//

static RankedTensorType withDim(Value tensor, int64_t dim, int64_t size) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return type.clone(shape);
}

static int64_t dimSize(Value tensor, int64_t dim) {
  return cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
}

Value mlir::hyperparallel::sliceDim(OpBuilder &b, Location loc, Value tensor,
                                    int64_t dim, int64_t offset, int64_t size,
                                    int64_t stride) {
  if (offset == 0 && stride == 1 && size == dimSize(tensor, dim))
    return tensor;
  RankedTensorType type = withDim(tensor, dim, size);
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t extent : type.getShape())
    sizes.push_back(b.getIndexAttr(extent));
  offsets[dim] = b.getIndexAttr(offset);
  strides[dim] = b.getIndexAttr(stride);
  return tensor::ExtractSliceOp::create(b, loc, type, tensor, offsets, sizes,
                                        strides);
}

Value mlir::hyperparallel::padDim(OpBuilder &b, Location loc, Value tensor,
                                  int64_t dim, int64_t low, int64_t high) {
  if (low == 0 && high == 0)
    return tensor;
  RankedTensorType type =
      withDim(tensor, dim, dimSize(tensor, dim) + low + high);
  SmallVector<OpFoldResult> lows(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> highs(type.getRank(), b.getIndexAttr(0));
  lows[dim] = b.getIndexAttr(low);
  highs[dim] = b.getIndexAttr(high);
  Value zero = zeroScalar(b, loc, type.getElementType());
  return tensor::PadOp::create(b, loc, type, tensor, lows, highs, zero);
}

Value mlir::hyperparallel::resizeDim(OpBuilder &b, Location loc, Value tensor,
                                     int64_t dim, int64_t size) {
  return windowDim(b, loc, tensor, dim, 0, size);
}

Value mlir::hyperparallel::windowDim(OpBuilder &b, Location loc, Value tensor,
                                     int64_t dim, int64_t lo, int64_t size) {
  int64_t begin = std::max<int64_t>(lo, 0);
  int64_t end = std::min(lo + size, dimSize(tensor, dim));
  if (end <= begin) {
    RankedTensorType type = withDim(tensor, dim, size);
    Value zero = zeroScalar(b, loc, type.getElementType());
    return tensor::SplatOp::create(b, loc, zero, type);
  }
  Value cut = sliceDim(b, loc, tensor, dim, begin, end - begin);
  return padDim(b, loc, cut, dim, begin - lo, lo + size - end);
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// The identity, but a constant where the operand has only one element.
static AffineMap broadcastMap(OpBuilder &b, Value operand,
                              RankedTensorType resultType) {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < resultType.getRank(); ++dim)
    exprs.push_back(dimSize(operand, dim) == resultType.getDimSize(dim)
                        ? b.getAffineDimExpr(dim)
                        : b.getAffineConstantExpr(0));
  return AffineMap::get(resultType.getRank(), 0, exprs, b.getContext());
}

Value mlir::hyperparallel::mapElements(OpBuilder &b, Location loc,
                                       RankedTensorType resultType,
                                       ValueRange operands,
                                       ElementBuilder element) {
  int64_t rank = resultType.getRank();
  Value init = tensor::EmptyOp::create(b, loc, resultType.getShape(),
                                       resultType.getElementType());
  SmallVector<AffineMap> maps;
  for (Value operand : operands)
    maps.push_back(broadcastMap(b, operand, resultType));
  maps.push_back(b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto build = [&](OpBuilder &body, Location bodyLoc, ValueRange args) {
    SmallVector<Value> position;
    for (int64_t dim = 0; dim < rank; ++dim)
      position.push_back(linalg::IndexOp::create(body, bodyLoc, dim));
    Value value = element(body, bodyLoc, position, args.drop_back());
    linalg::YieldOp::create(body, bodyLoc, value);
  };
  auto generic =
      linalg::GenericOp::create(b, loc, TypeRange(resultType), operands,
                                ValueRange(init), maps, iterators, build);
  // Positions that nobody asked for.
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(generic.getRegion().front())))
    if (isa<linalg::IndexOp>(op) && op.use_empty())
      op.erase();
  return generic.getResult(0);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value mlir::hyperparallel::zeroScalar(OpBuilder &b, Location loc, Type type) {
  if (auto complex = dyn_cast<ComplexType>(type)) {
    Attribute zero = b.getZeroAttr(complex.getElementType());
    return complex::ConstantOp::create(b, loc, type,
                                       b.getArrayAttr({zero, zero}));
  }
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

static TypedAttr neutralFloat(Reduction kind, FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  switch (kind) {
  case Reduction::Sum:
  case Reduction::Avg:
    // -0.0 + x is x for every x.
    return FloatAttr::get(type, APFloat::getZero(semantics, /*Negative=*/true));
  case Reduction::Prod:
    return FloatAttr::get(type, 1.0);
  case Reduction::Max:
    return FloatAttr::get(type, APFloat::getInf(semantics, /*Negative=*/true));
  case Reduction::Min:
    return FloatAttr::get(type, APFloat::getInf(semantics));
  case Reduction::And:
  case Reduction::Or:
    return {};
  }
  return {};
}

TypedAttr mlir::hyperparallel::neutralElement(Reduction kind, Type type) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return neutralFloat(kind, floatType);
  if (!type.isIntOrIndex())
    return {};
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  auto make = [&](const APInt &value) { return IntegerAttr::get(type, value); };
  switch (kind) {
  case Reduction::Sum:
  case Reduction::Avg:
  case Reduction::Or:
    return make(APInt::getZero(width));
  case Reduction::Prod:
    return make(APInt(width, 1));
  case Reduction::And:
    return make(APInt::getAllOnes(width));
  case Reduction::Max:
    return make(APInt::getSignedMinValue(width));
  case Reduction::Min:
    return make(APInt::getSignedMaxValue(width));
  }
  return {};
}

Value mlir::hyperparallel::isBelow(OpBuilder &b, Location loc, Value index,
                                   int64_t bound) {
  Value limit = arith::ConstantIndexOp::create(b, loc, bound);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, limit);
}

Value mlir::hyperparallel::isInRange(OpBuilder &b, Location loc, Value index,
                                     int64_t lo, int64_t hi) {
  Value above;
  if (lo > 0) {
    Value limit = arith::ConstantIndexOp::create(b, loc, lo);
    above =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, index, limit);
  }
  return andConditions(b, loc, above, isBelow(b, loc, index, hi));
}

Value mlir::hyperparallel::andConditions(OpBuilder &b, Location loc, Value lhs,
                                         Value rhs) {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return arith::AndIOp::create(b, loc, lhs, rhs);
}

//===----------------------------------------------------------------------===//
// Captured values
//===----------------------------------------------------------------------===//

IRMapping
mlir::hyperparallel::mapValuesFromOutside(Operation *op,
                                          function_ref<Value(Value)> local) {
  IRMapping mapping;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *owner = operand.getParentRegion()->getParentOp();
      if (inner == op || !op->isAncestor(owner))
        mapping.map(operand, local(operand));
    }
  });
  return mapping;
}
