//===- FragmentWriter.cpp - A group of linalg ops as HFusion --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   1. A buffer is a tensor: its argument, or what a member last wrote. An
//      operand is that tensor without dimensions of size 1 that no loop runs
//      along, with the others in the order of the loops.
//   2. The body is evaluated from its results backwards, each scalar op as one
//      op on tensors, over only those loops that its operands depend on; they
//      are broadcast where they meet others. An index is a count along its
//      loop, as i64.
//   3. A reduction is of what the combiner takes in, and is combined with the
//      result's former value, unless that is neutral.
//   4. Results are brought into their buffer's shape.
//
// Booleans are bytes in memory, and i1 between ops. Refused: f64, access that
// is no permutation of loops, reductions by more than one combiner, scalars
// that are known at run time only.
//
// Cost: linear in ops and operands.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/FragmentWriter.h"
#include "lib/Conversion/LinalgToHFusion/HFusionNames.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

static FailureOr<Type> checkElement(Operation *where, Type type) {
  if (Type element = toElement(type))
    return element;
  return where->emitError("expected elements of i1, i8, i16, i32, i64, f16, "
                          "bf16 or f32 for Ascend but got ")
         << type << "; compute it in f32";
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

HFusionValue FragmentWriter::spread(const LoopValue &value,
                                    ArrayRef<unsigned> loops) {
  SmallVector<int64_t> shape, added;
  for (auto [position, loop] : llvm::enumerate(loops)) {
    shape.push_back(extents[loop]);
    if (!llvm::is_contained(value.loops, loop))
      added.push_back(static_cast<int64_t>(position));
  }
  if (value.value.isScalar)
    return function.fill(value.value, shape);
  return added.empty() ? value.value
                       : function.broadcast(value.value, added, shape);
}

/// An elementwise op on values of different loops.
FragmentWriter::LoopValue FragmentWriter::apply(StringRef op,
                                                ArrayRef<LoopValue> operands,
                                                Type element,
                                                bool takesScalars) {
  LoopValue result;
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    if (llvm::any_of(operands, [&](const LoopValue &operand) {
          return llvm::is_contained(operand.loops, loop);
        }))
      result.loops.push_back(loop);
  bool allScalars = llvm::all_of(operands, [](const LoopValue &operand) {
    return operand.value.isScalar;
  });
  SmallVector<HFusionValue> aligned;
  for (const LoopValue &operand : operands)
    aligned.push_back(operand.value.isScalar && takesScalars && !allScalars
                          ? operand.value
                          : spread(operand, result.loops));
  SmallVector<int64_t> shape;
  for (unsigned loop : result.loops)
    shape.push_back(extents[loop]);
  result.value = function.elementwise(op, aligned, shape, element);
  return result;
}

/// yes where the value (i1) is true, else no.
FragmentWriter::LoopValue FragmentWriter::truth(const LoopValue &value,
                                                TypedAttr yes, TypedAttr no) {
  return apply(
      kSelect,
      {value, {function.constant(yes), {}}, {function.constant(no), {}}},
      yes.getType());
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// What is in a buffer: bytes for booleans.
HFusionValue FragmentWriter::read(Value buffer) {
  auto [entry, isNew] = contents.try_emplace(buffer);
  if (isNew) {
    auto type = cast<MemRefType>(buffer.getType());
    Type element = toElement(type.getElementType());
    if (element.isInteger(1))
      element = IntegerType::get(element.getContext(), 8);
    entry->second = function.addArgument(type.getShape(), element);
    inputs.push_back(buffer);
  }
  return entry->second;
}

/// What the loops see of a tensor.
FailureOr<FragmentWriter::LoopValue>
FragmentWriter::fromBuffer(HFusionValue value, AffineMap map,
                           Operation *where) {
  SmallVector<unsigned> loops;
  SmallVector<int64_t> shape;
  for (auto [size, expr] : llvm::zip_equal(value.shape, map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool isFixed = isa<AffineConstantExpr>(expr) && size == 1;
    if (!isFixed && (!dim || llvm::is_contained(loops, dim.getPosition()) ||
                     extents[dim.getPosition()] != size))
      return where->emitError("expected an operand that loops read whole, each "
                              "dimension by a loop of its own, for Ascend but "
                              "got the map ")
             << AffineMapAttr::get(map);
    if (dim) {
      loops.push_back(dim.getPosition());
      shape.push_back(size);
    }
  }
  value = function.reshape(value, shape);
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(0, loops.size()));
  llvm::sort(order, [&](int64_t a, int64_t b) { return loops[a] < loops[b]; });
  if (!llvm::is_sorted(loops))
    value = function.transpose(value, order);
  llvm::sort(loops);
  return LoopValue{value, loops};
}

LogicalResult FragmentWriter::toBuffer(LoopValue value, OpOperand &init) {
  AffineMap map = member.getMatchingIndexingMap(&init);
  auto type = cast<MemRefType>(init.get().getType());
  SmallVector<unsigned> inOrder;
  for (auto [size, expr] : llvm::zip_equal(type.getShape(), map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool isFixed = isa<AffineConstantExpr>(expr) && size == 1;
    if (!isFixed && (!dim || llvm::is_contained(inOrder, dim.getPosition()) ||
                     extents[dim.getPosition()] != size))
      return member.emitError("expected a result that loops write whole, each "
                              "dimension by a loop of its own, for Ascend but "
                              "got the map ")
             << AffineMapAttr::get(map);
    if (dim)
      inOrder.push_back(dim.getPosition());
  }
  SmallVector<unsigned> loops = inOrder;
  llvm::sort(loops);
  for (unsigned loop : value.loops)
    if (!llvm::is_contained(loops, loop))
      return member.emitError("expected a result that each iteration writes a "
                              "place of its own of, for Ascend, but got one "
                              "that several write");
  if (value.value.element.isInteger(1))
    value = truth(value, one(IntegerType::get(type.getContext(), 8)),
                  one(IntegerType::get(type.getContext(), 8), 0));
  HFusionValue tensor = spread(value, loops);
  SmallVector<int64_t> permutation;
  for (unsigned loop : inOrder)
    permutation.push_back(llvm::find(loops, loop) - loops.begin());
  if (!llvm::is_sorted(inOrder))
    tensor = function.transpose(tensor, permutation);
  contents[init.get()] = function.reshape(tensor, type.getShape());
  if (!llvm::is_contained(written, init.get()))
    written.push_back(init.get());
  return success();
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

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
  if (result.value.isScalar)
    result.value = function.fill(result.value, {});
  result.value = function.cast(result.value, *element, rounding);
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

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

/// What the combiner takes in, reduced, and combined with what was there.
FailureOr<FragmentWriter::LoopValue>
FragmentWriter::evaluateReduction(OpOperand &init) {
  Operation *combiner =
      getCombiner(member, init.getOperandNumber() - member.getNumDpsInputs());
  if (!combiner)
    return member.emitError("expected a reduction by one operation, such as a "
                            "sum or a maximum, for Ascend");
  BlockArgument former = member.getMatchingBlockArgument(&init);
  FailureOr<LoopValue> value =
      evaluate(combiner->getOperand(combiner->getOperand(0) == former));
  FailureOr<LoopValue> before = evaluate(former);
  if (failed(value) || failed(before))
    return failure();
  LoopValue reduced;
  SmallVector<int64_t> dimensions, shape;
  for (auto [loop, kind] : llvm::enumerate(member.getIteratorTypesArray())) {
    if (linalg::isReductionIterator(kind)) {
      dimensions.push_back(static_cast<int64_t>(loop));
      continue;
    }
    reduced.loops.push_back(static_cast<unsigned>(loop));
    shape.push_back(extents[loop]);
  }
  SmallVector<unsigned> all =
      llvm::to_vector(llvm::seq<unsigned>(0, extents.size()));
  HFusionValue start = function.fill(
      function.constant(*arith::getNeutralElement(combiner)), shape);
  StringRef name = combiner->getName().getStringRef();
  reduced.value = function.reduce(name, spread(*value, all), start, dimensions);
  if (before->value.name == start.name)
    return reduced;
  return apply(findElementwise(name), {reduced, *before}, value->value.element);
}

/// A result's value. A number that is only right where assertions hold is 0
/// where they do not: it may be the number of a row.
FailureOr<FragmentWriter::LoopValue>
FragmentWriter::evaluateResult(OpOperand &init) {
  if (!isa<MemRefType>(init.get().getType()))
    return member.emitError("expected results in buffers");
  if (member.getNumReductionLoops() != 0)
    return evaluateReduction(init);
  unsigned number = init.getOperandNumber() - member.getNumDpsInputs();
  FailureOr<LoopValue> value =
      evaluate(member.getBlock()->getTerminator()->getOperand(number));
  if (failed(value) || !isa<IntegerType>(value->value.element) ||
      value->value.element.isInteger(1))
    return value;
  LoopValue zero{function.constant(one(value->value.element, 0)), {}};
  for (const LoopValue &condition : conditions)
    *value = apply(kSelect, {condition, *value, zero}, value->value.element);
  return value;
}

/// Numbers of assertions that fail, of which the highest is kept.
LogicalResult FragmentWriter::writeAssertions(LinalgOp op) {
  conditions.clear();
  Type word = IntegerType::get(op.getContext(), 32);
  for (auto assertion : op.getBlock()->getOps<cf::AssertOp>()) {
    FailureOr<LoopValue> condition = evaluate(assertion.getArg());
    if (failed(condition))
      return failure();
    if (condition->value.isScalar)
      condition->value = function.fill(condition->value, {});
    conditions.push_back(*condition);
    int32_t number = numberAssertion(assertion.getMsg());
    LoopValue failing = truth(*condition, one(word, 0), one(word, number));
    HFusionValue worst = failing.value;
    if (!failing.loops.empty())
      worst = function.reduce(
          "arith.maxsi", worst,
          function.fill(function.constant(one(word, 0)), {}),
          llvm::to_vector(llvm::seq<int64_t>(0, failing.loops.size())));
    if (violation)
      worst = function.elementwise(findElementwise("arith.maxsi"),
                                   {*violation, worst}, {}, word);
    violation = worst;
  }
  return success();
}

LogicalResult FragmentWriter::writeMember(LinalgOp op) {
  member = op;
  extents = op.getStaticLoopRanges();
  evaluated.clear();
  if (llvm::any_of(extents, ShapedType::isDynamic))
    return op.emitError("expected loops of static extent for Ascend but got "
                        "one of unknown extent");
  if (failed(writeAssertions(op)))
    return failure();
  // All results are of the buffers as they were.
  SmallVector<std::pair<OpOperand *, LoopValue>> results;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    FailureOr<LoopValue> value = evaluateResult(init);
    if (failed(value))
      return failure();
    results.push_back({&init, std::move(*value)});
  }
  for (auto &[init, value] : results)
    if (failed(toBuffer(std::move(value), *init)))
      return failure();
  return success();
}

LogicalResult FragmentWriter::write() {
  for (const KernelMember &one : group.members)
    if (failed(writeMember(one.op)))
      return failure();
  return success();
}

std::string FragmentWriter::finish(ArrayRef<Value> outputs) {
  SmallVector<HFusionValue> results;
  for (Value output : outputs)
    results.push_back(contents.find(output)->second);
  if (violation)
    results.push_back(function.reshape(*violation, {1}));
  return function.finish(results);
}

} // namespace mlir::hyperparallel
