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
//   5. Ascend's compiler fails at elementwise ops on tensors of no dimensions:
//      they are done, and kept in buffers, as tensors of one element.
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
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

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

/// A value of no dimensions, but of one element.
HFusionValue FragmentWriter::asOneElement(const HFusionValue &value) {
  return value.isScalar ? function.fill(value, {1})
                        : function.reshape(value, {1});
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
  for (const LoopValue &operand : operands) {
    bool staysScalar = operand.value.isScalar && takesScalars && !allScalars;
    aligned.push_back(staysScalar            ? operand.value
                      : result.loops.empty() ? asOneElement(operand.value)
                                             : spread(operand, result.loops));
  }
  SmallVector<int64_t> shape, computed;
  for (unsigned loop : result.loops)
    shape.push_back(extents[loop]);
  computed = shape.empty() ? SmallVector<int64_t>{1} : shape;
  result.value = function.reshape(
      function.elementwise(op, aligned, computed, element), shape);
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

/// The shape of a buffer's tensor.
static SmallVector<int64_t> shapeOf(MemRefType type) {
  return type.getRank() == 0 ? SmallVector<int64_t>{1}
                             : llvm::to_vector(type.getShape());
}

/// What is in a buffer: bytes for booleans.
HFusionValue FragmentWriter::read(Value buffer) {
  auto [entry, isNew] = contents.try_emplace(buffer);
  if (isNew) {
    auto type = cast<MemRefType>(buffer.getType());
    Type element = toElement(type.getElementType());
    if (element.isInteger(1))
      element = IntegerType::get(element.getContext(), 8);
    entry->second = function.addArgument(shapeOf(type), element);
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
  if (map.getNumResults() == 0)
    return LoopValue{function.reshape(value, {}), {}};
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
  HFusionValue tensor =
      loops.empty() ? asOneElement(value.value) : spread(value, loops);
  SmallVector<int64_t> permutation;
  for (unsigned loop : inOrder)
    permutation.push_back(llvm::find(loops, loop) - loops.begin());
  if (!llvm::is_sorted(inOrder))
    tensor = function.transpose(tensor, permutation);
  contents[init.get()] = function.reshape(tensor, shapeOf(type));
  if (!llvm::is_contained(written, init.get()))
    written.push_back(init.get());
  return success();
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
  HFusionValue neutral = function.constant(*arith::getNeutralElement(combiner));
  HFusionValue start = function.fill(neutral, shape);
  StringRef name = combiner->getName().getStringRef();
  reduced.value = function.reduce(name, spread(*value, all), start, dimensions);
  bool isNeutral = shape.empty() ? asOneElement(before->value).name ==
                                       asOneElement(neutral).name
                                 : before->value.name == start.name;
  if (isNeutral)
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
    conditions.push_back(*condition);
    int32_t number = numberAssertion(assertion.getMsg());
    LoopValue failing = truth(*condition, one(word, 0), one(word, number));
    HFusionValue worst = failing.value;
    if (!failing.loops.empty())
      worst = function.reduce(
          "arith.maxsi", worst,
          function.fill(function.constant(one(word, 0)), {}),
          llvm::to_vector(llvm::seq<int64_t>(0, failing.loops.size())));
    worst = asOneElement(worst);
    if (violation)
      worst = function.elementwise(findElementwise("arith.maxsi"),
                                   {*violation, worst}, {1}, word);
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

Value FragmentWriter::getUnchanged(Value output) const {
  StringRef origin = contents.find(output)->second.origin();
  for (auto [number, input] : llvm::enumerate(inputs))
    if (origin == function.getArgument(number).name)
      return input;
  return {};
}

bool FragmentWriter::areEqual(Value output, Value other) const {
  return contents.find(output)->second.name ==
         contents.find(other)->second.name;
}

CutFragment FragmentWriter::finish(ArrayRef<Value> outputs,
                                   const llvm::StringSet<> &refused) {
  SmallVector<HFusionValue> results;
  for (Value output : outputs)
    results.push_back(contents.find(output)->second);
  if (violation)
    results.push_back(*violation);
  return cutFragment(function, results, refused);
}

} // namespace mlir::hyperparallel
