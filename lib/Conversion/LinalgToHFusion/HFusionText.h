//===- HFusionText.h - Functions in HFusion's text --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ascend's compiler (bishengir-compile) takes MLIR of an older release than the
// one we link: `linalg.elemwise_*` is gone from ours, and `hfusion` was never
// in it. So functions for it are written as text, op by op, each with one
// name.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_HFUSIONTEXT_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_HFUSIONTEXT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::hyperparallel {

/// A tensor of a function, or a scalar constant.
struct HFusionValue {
  std::string name;
  SmallVector<int64_t> shape;
  Type element;
  bool isScalar = false;
  std::string reshaped; ///< what it is a reshape of; empty if of nothing

  /// Whose elements it has, in the same order.
  StringRef origin() const { return reshaped.empty() ? name : reshaped; }
};

/// Writes one function. Equal ops are written once.
class HFusionFunction {
public:
  explicit HFusionFunction(StringRef name) : name(name) {}

  HFusionValue addArgument(ArrayRef<int64_t> shape, Type element);
  size_t getNumArguments() const { return arguments.size(); }
  const HFusionValue &getArgument(size_t number) const {
    return arguments[number];
  }
  HFusionValue constant(TypedAttr value);
  HFusionValue fill(const HFusionValue &scalar, ArrayRef<int64_t> shape);
  /// 0, 1, 2, … along the one dimension.
  HFusionValue count(int64_t size, Type element);
  /// `op` with its attributes, elementwise on operands of one shape, of which
  /// some may be scalars.
  HFusionValue elementwise(StringRef op, ArrayRef<HFusionValue> operands,
                           ArrayRef<int64_t> shape, Type element);
  HFusionValue cast(const HFusionValue &value, Type element,
                    StringRef rounding);
  /// `added` are the result's dimensions that the value does not have.
  HFusionValue broadcast(const HFusionValue &value, ArrayRef<int64_t> added,
                         ArrayRef<int64_t> shape);
  /// Dimension i of the result is dimension `permutation[i]` of the value.
  HFusionValue transpose(const HFusionValue &value,
                         ArrayRef<int64_t> permutation);
  /// `combiner` is an op's name, such as arith.addf.
  HFusionValue reduce(StringRef combiner, const HFusionValue &value,
                      const HFusionValue &init, ArrayRef<int64_t> dimensions);
  /// Adds or takes away dimensions of size 1; undoes an earlier one.
  HFusionValue reshape(const HFusionValue &value, ArrayRef<int64_t> shape);

  /// The function that returns these tensors.
  std::string finish(ArrayRef<HFusionValue> results) const;

  /// One op.
  struct Line {
    HFusionValue result;
    std::string text; ///< what is behind the result's name
    /// Constants, and what is made of nothing else: cheaper to write again than
    /// to read from memory.
    bool isCheap;
  };
  ArrayRef<Line> getLines() const { return lines; }
  StringRef getName() const { return name; }

  static std::string typeOf(const HFusionValue &value);
  /// A function of these arguments and results; `body` is lines.
  static std::string write(StringRef name, ArrayRef<HFusionValue> arguments,
                           StringRef body, ArrayRef<HFusionValue> results);

private:
  HFusionValue add(const std::string &text, ArrayRef<int64_t> shape,
                   Type element, bool isScalar = false);
  /// " ins(%a, %b : t, t) outs(%e : t)".
  std::string operands(ArrayRef<HFusionValue> ins, ArrayRef<int64_t> shape,
                       Type element);
  HFusionValue empty(ArrayRef<int64_t> shape, Type element);

  std::string name;
  std::vector<Line> lines;
  SmallVector<HFusionValue> arguments;
  llvm::StringMap<std::string> known;         ///< text of an op to its name
  llvm::StringMap<HFusionValue> reshapedFrom; ///< by name of a reshape
  int64_t counter = 0;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_HFUSIONTEXT_H
