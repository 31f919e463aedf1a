//===- FragmentWriter.h - A group of linalg ops as HFusion ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes what a group of linalg ops on buffers computes as one function of
// HFusion, on tensors: of the buffers that the group reads before it writes
// them, to those that it writes and others see.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_FRAGMENTWRITER_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_FRAGMENTWRITER_H

#include "lib/Conversion/LinalgToHFusion/FragmentCuts.h"
#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::hyperparallel {

/// The number by which the runtime knows an assertion's text.
using NumberAssertion = llvm::function_ref<int32_t(StringRef)>;

class FragmentWriter {
public:
  FragmentWriter(const KernelGroup &group, NumberAssertion numberAssertion)
      : group(group), numberAssertion(numberAssertion), function("fragment") {}

  /// Writes all members; reports what HFusion has no op for.
  LogicalResult write();
  /// The function, called @fragment, or its parts: from the inputs to the
  /// contents of `outputs`; and last, where there are assertions, to the number
  /// of one that failed, or 0, as a tensor<1xi32>.
  CutFragment finish(ArrayRef<Value> outputs, const llvm::StringSet<> &refused);
  bool hasAssertions() const { return violation.has_value(); }

  /// Buffers whose former contents are read, in the order of arguments.
  ArrayRef<Value> getInputs() const { return inputs; }
  /// The input whose elements, unchanged, are what is written; null if none's.
  Value getUnchanged(Value output) const;
  /// True if both get the same elements.
  bool areEqual(Value output, Value other) const;
  /// All buffers that are written.
  ArrayRef<Value> getWritten() const { return written; }

private:
  /// A value of a body for all iterations of the loops (ascending) that it
  /// depends on.
  struct LoopValue {
    HFusionValue value;
    SmallVector<unsigned> loops;
  };

  LogicalResult writeMember(linalg::LinalgOp op);
  LogicalResult writeAssertions(linalg::LinalgOp op);
  FailureOr<LoopValue> evaluateResult(OpOperand &init);
  FailureOr<LoopValue> evaluateReduction(OpOperand &init);
  FailureOr<LoopValue> evaluate(Value value);
  FailureOr<LoopValue> evaluateArgument(BlockArgument argument);
  FailureOr<LoopValue> evaluateOp(Operation *op);
  FailureOr<LoopValue> evaluateCast(Operation *op);
  FailureOr<LoopValue> evaluateComparison(Operation *op);
  FailureOr<LoopValue> compareUnsigned(arith::CmpIOp op, LoopValue left,
                                       LoopValue right);
  FailureOr<LoopValue> evaluatePower(Operation *op);
  FailureOr<LoopValue> evaluateConstant(Attribute value);
  FailureOr<LoopValue> readNumber(Value buffer);

  HFusionValue read(Value buffer);
  FailureOr<LoopValue> fromBuffer(HFusionValue contents, AffineMap map,
                                  Operation *where);
  LogicalResult toBuffer(LoopValue value, OpOperand &init);
  /// The value, for all iterations of `loops`.
  HFusionValue spread(const LoopValue &value, ArrayRef<unsigned> loops);
  LoopValue apply(StringRef op, ArrayRef<LoopValue> operands, Type element,
                  bool takesScalars = true);
  HFusionValue asOneElement(const HFusionValue &value);
  LoopValue truth(const LoopValue &value, TypedAttr yes, TypedAttr no);

  const KernelGroup &group;
  NumberAssertion numberAssertion;
  HFusionFunction function;
  std::optional<HFusionValue> violation; ///< one element
  SmallVector<Value> inputs;
  llvm::MapVector<Value, HFusionValue> contents; ///< of buffers
  SmallVector<Value> written;
  // Of the member that is written.
  linalg::LinalgOp member;
  SmallVector<int64_t> extents;
  SmallVector<LoopValue> conditions; ///< that its assertions want
  DenseMap<Value, LoopValue> evaluated;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_FRAGMENTWRITER_H
