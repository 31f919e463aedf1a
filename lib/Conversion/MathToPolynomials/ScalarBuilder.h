//===- ScalarBuilder.h - Float arithmetic on scalars, short -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Short names for the arithmetic that polynomial approximations are made of, on
// scalars of one float type. `mulAdd` alone is a multiply-add where there is
// one: what else is contracted would depend on the code around it.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_MATHTOPOLYNOMIALS_SCALARBUILDER_H
#define HYPERPARALLEL_LIB_CONVERSION_MATHTOPOLYNOMIALS_SCALARBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace mlir::hyperparallel {

/// `type` is f32 or f64; its integers have the same width.
class ScalarBuilder {
public:
  ScalarBuilder(OpBuilder &builder, Location loc, FloatType type)
      : builder(builder), loc(loc), type(type),
        integerType(builder.getIntegerType(type.getWidth())) {}

  Value constant(double value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(type, value));
  }
  Value integer(int64_t value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(integerType, value));
  }
  Value add(Value a, Value b) {
    return arith::AddFOp::create(builder, loc, a, b);
  }
  Value sub(Value a, Value b) {
    return arith::SubFOp::create(builder, loc, a, b);
  }
  Value mul(Value a, Value b) {
    return arith::MulFOp::create(builder, loc, a, b);
  }
  Value div(Value a, Value b) {
    return arith::DivFOp::create(builder, loc, a, b);
  }
  Value negate(Value a) { return arith::NegFOp::create(builder, loc, a); }
  Value absolute(Value a) { return math::AbsFOp::create(builder, loc, a); }
  Value squareRoot(Value a) { return math::SqrtOp::create(builder, loc, a); }
  Value copySign(Value magnitude, Value sign) {
    return math::CopySignOp::create(builder, loc, magnitude, sign);
  }
  /// a * b + c
  Value mulAdd(Value a, Value b, Value c) {
    return LLVM::FMulAddOp::create(builder, loc, a, b, c);
  }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value less(Value a, Value b) {
    return compare(arith::CmpFPredicate::OLT, a, b);
  }
  Value equal(Value a, Value b) {
    return compare(arith::CmpFPredicate::OEQ, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  /// The smaller one; a NaN in `a` stays.
  Value atMost(Value a, double limit) {
    Value bound = constant(limit);
    return select(less(bound, a), bound, a);
  }
  Value atLeast(Value a, double limit) {
    Value bound = constant(limit);
    return select(less(a, bound), bound, a);
  }
  Value bits(Value a) {
    return arith::BitcastOp::create(builder, loc, integerType, a);
  }
  Value fromBits(Value a) {
    return arith::BitcastOp::create(builder, loc, type, a);
  }
  Value addInt(Value a, Value b) {
    return arith::AddIOp::create(builder, loc, a, b);
  }
  Value subInt(Value a, Value b) {
    return arith::SubIOp::create(builder, loc, a, b);
  }
  Value andInt(Value a, int64_t mask) {
    return arith::AndIOp::create(builder, loc, a, integer(mask));
  }
  Value orInt(Value a, Value b) {
    return arith::OrIOp::create(builder, loc, a, b);
  }
  Value shiftLeft(Value a, int64_t amount) {
    return arith::ShLIOp::create(builder, loc, a, integer(amount));
  }
  /// Arithmetic.
  Value shiftRight(Value a, int64_t amount) {
    return arith::ShRSIOp::create(builder, loc, a, integer(amount));
  }
  Value isNonZero(Value a) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, a,
                                 integer(0));
  }
  Value toFloat(Value a) {
    return arith::SIToFPOp::create(builder, loc, type, a);
  }
  /// coefficients[0] + coefficients[1] x + …
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = mulAdd(sum, x, constant(coefficient));
    return sum;
  }

  OpBuilder &builder;
  Location loc;
  FloatType type;
  IntegerType integerType;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_MATHTOPOLYNOMIALS_SCALARBUILDER_H
