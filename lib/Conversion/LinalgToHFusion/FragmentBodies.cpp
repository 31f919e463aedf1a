//===- FragmentBodies.cpp - Scalar ops as ops of HFusion on tensors -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What FragmentWriter writes for the ops of a body, from the value that is
// wanted backwards. Each is written once.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/FragmentWriter.h"
#include "lib/Conversion/LinalgToHFusion/HFusionNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace mlir::hyperparallel {

static FailureOr<Type> checkElement(Operation *where, Type type) {
  if (Type element = toElement(type))
    return element;
  return where->emitError("expected elements of i1, i8, i16, i32, i64, f16, "
                          "bf16 or f32 for Ascend but got ")
         << type << "; compute it in f32";
}

FailureOr<FragmentWriter::LoopValue>
FragmentWriter::evaluateConstant(Attribute attribute) {
  auto value = dyn_cast<TypedAttr>(attribute);
  if (!value || !isa<IntegerAttr, FloatAttr>(attribute))
    return member.emitError("expected a number but got the constant ")
           << attribute;
  FailureOr<Type> element = checkElement(member, value.getType());
  if (failed(element))
    return failure();
  if (value.getType().isIndex())
    value = IntegerAttr::get(*element, cast<IntegerAttr>(value).getInt());
  return LoopValue{function.constant(value), {}};
}

/// A constant buffer of one number.
FailureOr<FragmentWriter::LoopValue> FragmentWriter::readNumber(Value buffer) {
  auto op = buffer.getDefiningOp<memref::GetGlobalOp>();
  auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
      op, op.getNameAttr());
  auto value = dyn_cast_or_null<DenseElementsAttr>(
      global ? global.getInitialValueAttr() : Attribute());
  if (!value || !value.isSplat())
    return op.emitError("expected a constant of one number here; run "
                        "hp-call-library before");
  return evaluateConstant(value.getSplatValue<Attribute>());
}

FailureOr<FragmentWriter::LoopValue>
FragmentWriter::evaluateArgument(BlockArgument argument) {
  OpOperand &operand = member->getOpOperand(argument.getArgNumber());
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type)
    return evaluate(operand.get());
  if (auto element = checkElement(member, type.getElementType());
      failed(element))
    return failure();
  if (operand.get().getDefiningOp<memref::GetGlobalOp>())
    return readNumber(operand.get());
  auto value = fromBuffer(read(operand.get()),
                          member.getMatchingIndexingMap(&operand), member);
  if (failed(value) || !type.getElementType().isInteger(1))
    return value;
  // Booleans are bytes in memory.
  LoopValue zero{function.constant(one(value->value.element, 0)), {}};
  return apply("hfusion.compare {compare_fn = #hfusion.compare_fn<vne>}",
               {*value, zero}, type.getElementType());
}

FailureOr<FragmentWriter::LoopValue>
FragmentWriter::evaluateCast(Operation *op) {
  FailureOr<LoopValue> value = evaluate(op->getOperand(0));
  FailureOr<Type> element = checkElement(op, op->getResult(0).getType());
  if (failed(value) || failed(element))
    return failure();
  if (value->value.element == *element)
    return value;
  if (value->value.element.isInteger(1)) {
    // As a signed number, true is -1.
    bool isSigned =
        isa<arith::ExtSIOp, arith::SIToFPOp, arith::IndexCastOp>(op);
    return truth(*value, one(*element, isSigned ? -1 : 1), one(*element, 0));
  }
  if (isa<arith::ExtUIOp, arith::UIToFPOp, arith::FPToUIOp>(op))
    return op->emitError("expected signed numbers for Ascend but got ")
           << op->getName();
  if (element->isInteger(1)) {
    // The lowest bit.
    LoopValue bit{function.constant(one(value->value.element)), {}};
    LoopValue zero{function.constant(one(value->value.element, 0)), {}};
    LoopValue lowest = apply(findElementwise("arith.andi"), {*value, bit},
                             value->value.element, /*takesScalars=*/false);
    return apply("hfusion.compare {compare_fn = #hfusion.compare_fn<vne>}",
                 {lowest, zero}, *element);
  }
  StringRef rounding = isa<arith::FPToSIOp>(op)   ? "trunc"
                       : isa<arith::TruncIOp>(op) ? "truncwithoverflow"
                                                  : "rint";
  LoopValue result = *value;
  if (result.loops.empty())
    result.value = asOneElement(result.value);
  result.value = function.cast(result.value, *element, rounding);
  if (result.loops.empty())
    result.value = function.reshape(result.value, {});
  return result;
}

/// True for a number of which the sign is known: for it, comparisons with and
/// without sign are the same. Ascend's compiler has only the first for i64.
static bool isNonNegative(Value value) {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  std::optional<int64_t> constant = getConstantIntValue(value);
  return value.getDefiningOp<linalg::IndexOp>() || (constant && *constant >= 0);
}

/// The name of a predicate there, which compares like Python's operators: all
/// but != are false where one is no number.
static StringRef findPredicate(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    switch (compare.getPredicate()) {
    case arith::CmpFPredicate::OEQ:
      return "veq";
    case arith::CmpFPredicate::UNE:
      return "vne";
    case arith::CmpFPredicate::OLT:
      return "vlt";
    case arith::CmpFPredicate::OLE:
      return "vle";
    case arith::CmpFPredicate::OGT:
      return "vgt";
    case arith::CmpFPredicate::OGE:
      return "vge";
    default:
      return "";
    }
  }
  auto integers = cast<arith::CmpIOp>(op);
  bool isSigned =
      isNonNegative(integers.getLhs()) && isNonNegative(integers.getRhs());
  switch (integers.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return "veq";
  case arith::CmpIPredicate::ne:
    return "vne";
  case arith::CmpIPredicate::slt:
    return "vlt";
  case arith::CmpIPredicate::sle:
    return "vle";
  case arith::CmpIPredicate::sgt:
    return "vgt";
  case arith::CmpIPredicate::sge:
    return "vge";
  case arith::CmpIPredicate::ult:
    return isSigned ? "vlt" : "";
  case arith::CmpIPredicate::ule:
    return isSigned ? "vle" : "";
  case arith::CmpIPredicate::ugt:
    return isSigned ? "vgt" : "";
  case arith::CmpIPredicate::uge:
    return isSigned ? "vge" : "";
  }
  llvm_unreachable("all predicates are listed");
}

/// The predicate that is false where an unordered one is true: unordered or
/// less is not (ordered and at least).
static StringRef findOpposite(arith::CmpFPredicate predicate) {
  switch (predicate) {
  case arith::CmpFPredicate::ULT:
    return "vge";
  case arith::CmpFPredicate::ULE:
    return "vgt";
  case arith::CmpFPredicate::UGT:
    return "vle";
  case arith::CmpFPredicate::UGE:
    return "vlt";
  default:
    return "";
  }
}

/// Without sign, a negative number is greater than one that is not negative.
FailureOr<FragmentWriter::LoopValue>
FragmentWriter::compareUnsigned(arith::CmpIOp op, LoopValue left,
                                LoopValue right) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = op.getPredicate();
  if (!isNonNegative(op.getRhs())) {
    if (!isNonNegative(op.getLhs()))
      return op.emitError("expected a comparison that Ascend has but got one "
                          "without sign of two numbers that may be negative");
    std::swap(left, right);
    predicate = predicate == Predicate::ult   ? Predicate::ugt
                : predicate == Predicate::ule ? Predicate::uge
                : predicate == Predicate::ugt ? Predicate::ult
                                              : Predicate::ule;
  }
  bool isLess = predicate == Predicate::ult || predicate == Predicate::ule;
  StringRef name = predicate == Predicate::ult   ? "vlt"
                   : predicate == Predicate::ule ? "vle"
                   : predicate == Predicate::ugt ? "vgt"
                                                 : "vge";
  Type boolean = IntegerType::get(op->getContext(), 1);
  auto compare = [&](StringRef predicate, const LoopValue &other) {
    return apply(("hfusion.compare {compare_fn = #hfusion.compare_fn<" +
                  predicate + ">}")
                     .str(),
                 {left, other}, boolean, !left.value.isScalar);
  };
  LoopValue zero{function.constant(one(left.value.element, 0)), {}};
  return apply(findElementwise(isLess ? "arith.andi" : "arith.ori"),
               {compare(isLess ? "vge" : "vlt", zero), compare(name, right)},
               boolean, /*takesScalars=*/false);
}

FailureOr<FragmentWriter::LoopValue>
FragmentWriter::evaluateComparison(Operation *op) {
  FailureOr<LoopValue> left = evaluate(op->getOperand(0));
  FailureOr<LoopValue> right = evaluate(op->getOperand(1));
  if (failed(left) || failed(right))
    return failure();
  Type boolean = IntegerType::get(op->getContext(), 1);
  auto compare = [&](StringRef predicate) {
    return apply(("hfusion.compare {compare_fn = #hfusion.compare_fn<" +
                  predicate + ">}")
                     .str(),
                 {*left, *right}, boolean, !left->value.isScalar);
  };
  auto floats = dyn_cast<arith::CmpFOp>(op);
  if (StringRef predicate = findPredicate(op); !predicate.empty())
    return compare(predicate);
  if (auto integers = dyn_cast<arith::CmpIOp>(op))
    return compareUnsigned(integers, *left, *right);
  if (floats && floats.getPredicate() == arith::CmpFPredicate::ONE)
    return apply(findElementwise("arith.ori"), {compare("vlt"), compare("vgt")},
                 boolean, /*takesScalars=*/false);
  StringRef opposite = floats ? findOpposite(floats.getPredicate()) : "";
  if (opposite.empty())
    return op->emitError("expected a comparison that Ascend has but got ")
           << op->getName() << " with another predicate";
  return apply("hfusion.elemwise_unary {fun = #hfusion.unary_fn<vnot>}",
               compare(opposite), boolean);
}

/// Whole powers up to 4 are products: powers of negative numbers are defined,
/// then.
FailureOr<FragmentWriter::LoopValue>
FragmentWriter::evaluatePower(Operation *op) {
  FailureOr<LoopValue> base = evaluate(op->getOperand(0));
  if (failed(base))
    return failure();
  Type element = base->value.element;
  int64_t whole = -1;
  APFloat number(0.0);
  if (matchPattern(op->getOperand(1), m_ConstantFloat(&number))) {
    APSInt integer(8, /*isUnsigned=*/false);
    bool isExact = false;
    if (number.convertToInteger(integer, APFloat::rmTowardZero, &isExact) ==
            APFloat::opOK &&
        isExact)
      whole = integer.getSExtValue();
  } else if (std::optional<int64_t> integer =
                 getConstantIntValue(op->getOperand(1))) {
    whole = *integer;
  }
  StringRef mul = findElementwise("arith.mulf");
  if (whole >= 1 && whole <= 4) {
    LoopValue result = *base;
    for (int64_t i = 1; i < whole; ++i)
      result = apply(mul, {result, *base}, element);
    return result;
  }
  FailureOr<LoopValue> exponent = evaluate(op->getOperand(1));
  if (failed(exponent))
    return failure();
  if (exponent->value.element != element)
    return op->emitError("expected a whole power from 1 to 4, or one of the "
                         "base's type, for Ascend");
  return apply("hfusion.elemwise_binary {fun = #hfusion.binary_fn<powf>}",
               {*base, *exponent}, element, /*takesScalars=*/false);
}

FailureOr<FragmentWriter::LoopValue> FragmentWriter::evaluateOp(Operation *op) {
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    auto loop = static_cast<unsigned>(index.getDim());
    Type element = IntegerType::get(op->getContext(), 64);
    return LoopValue{function.count(extents[loop], element), {loop}};
  }
  if (isa<arith::CmpFOp, arith::CmpIOp>(op))
    return evaluateComparison(op);
  if (isa<math::PowFOp, math::FPowIOp>(op))
    return evaluatePower(op);
  if (isa<CastOpInterface>(op) && op->getNumOperands() == 1 &&
      !isa<arith::BitcastOp>(op))
    return evaluateCast(op);
  bool isSelect = isa<arith::SelectOp>(op);
  StringRef name = isSelect ? StringRef(kSelect)
                            : findElementwise(op->getName().getStringRef());
  FailureOr<Type> element = checkElement(op, op->getResult(0).getType());
  if (failed(element))
    return failure();
  if (name.empty() || (isSelect && element->isInteger(1)))
    return op->emitError("expected an op that Ascend has for whole tensors but "
                         "got ")
           << op->getName();
  SmallVector<LoopValue> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<LoopValue> value = evaluate(operand);
    if (failed(value))
      return failure();
    operands.push_back(std::move(*value));
  }
  if (isSelect && operands[0].value.isScalar)
    return op->emitError("expected a condition that differs between elements");
  bool takesScalars =
      isSelect || (op->getNumOperands() == 2 &&
                   StringRef(name).starts_with("linalg.elemwise"));
  return apply(name, operands, *element, takesScalars);
}

FailureOr<FragmentWriter::LoopValue> FragmentWriter::evaluate(Value value) {
  if (auto known = evaluated.find(value); known != evaluated.end())
    return known->second;
  FailureOr<LoopValue> result = failure();
  Attribute constant;
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == member.getBlock())
    result = evaluateArgument(argument);
  else if (matchPattern(value, m_Constant(&constant)))
    result = evaluateConstant(constant);
  else if (Operation *op = value.getDefiningOp();
           op && op->getBlock() == member.getBlock())
    result = evaluateOp(op);
  else
    return member.emitError("expected scalars that are known when the program "
                            "is compiled, for Ascend, but got one of type ")
           << value.getType();
  if (succeeded(result))
    evaluated[value] = *result;
  return result;
}

} // namespace mlir::hyperparallel
