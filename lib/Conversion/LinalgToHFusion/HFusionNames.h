//===- HFusionNames.h - What HFusion has, and calls it ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_HFUSIONNAMES_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_HFUSIONNAMES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::hyperparallel {

inline constexpr llvm::StringLiteral kSelect = "hfusion.select";

/// What an elementwise op is called there; empty if it is not there.
inline StringRef findElementwise(StringRef op) {
#define LINALG(ARITY, FN)                                                      \
  "linalg.elemwise_" #ARITY " {fun = #linalg." #ARITY "_fn<" #FN ">}"
#define HFUSION(ARITY, FN)                                                     \
  "hfusion.elemwise_" #ARITY " {fun = #hfusion." #ARITY "_fn<" #FN ">}"
  return llvm::StringSwitch<StringRef>(op)
      .Cases({"arith.addf", "arith.addi"}, LINALG(binary, add))
      .Cases({"arith.subf", "arith.subi"}, LINALG(binary, sub))
      .Cases({"arith.mulf", "arith.muli"}, LINALG(binary, mul))
      .Cases({"arith.divf", "arith.divsi"}, LINALG(binary, div))
      .Cases({"arith.maximumf", "arith.maxsi"}, LINALG(binary, max_signed))
      .Cases({"arith.minimumf", "arith.minsi"}, LINALG(binary, min_signed))
      .Case("arith.floordivsi", HFUSION(binary, floordivsi))
      .Case("arith.andi", HFUSION(binary, vand))
      .Case("arith.ori", HFUSION(binary, vor))
      .Case("arith.negf", LINALG(unary, negf))
      .Case("math.exp", LINALG(unary, exp))
      .Case("math.log", LINALG(unary, log))
      .Case("math.absf", LINALG(unary, abs))
      .Case("math.ceil", LINALG(unary, ceil))
      .Case("math.floor", LINALG(unary, floor))
      .Case("math.sqrt", HFUSION(unary, sqrt))
      .Case("math.rsqrt", HFUSION(unary, rsqrt))
      .Case("math.tanh", HFUSION(unary, tanh))
      .Case("math.erf", HFUSION(unary, erf))
      .Case("math.sin", HFUSION(unary, sin))
      .Case("math.cos", HFUSION(unary, cos))
      .Case("math.log1p", HFUSION(unary, log1p))
      .Case("math.log2", HFUSION(unary, log2))
      .Case("math.expm1", HFUSION(unary, expm1))
      .Case("math.exp2", HFUSION(unary, exp2))
      .Case("math.absi", HFUSION(unary, absi))
      .Default("");
#undef LINALG
#undef HFUSION
}

/// The element type of a tensor there; null for what the device has not got.
inline Type toElement(Type type) {
  if (type.isIndex())
    return IntegerType::get(type.getContext(), 64);
  if (type.isF32() || type.isF16() || type.isBF16() || type.isInteger(1) ||
      type.isInteger(8) || type.isInteger(16) || type.isInteger(32) ||
      type.isInteger(64))
    return type;
  return {};
}

/// A number as a constant of a type.
inline TypedAttr one(Type type, int64_t value = 1) {
  if (isa<FloatType>(type))
    return FloatAttr::get(type, static_cast<double>(value));
  return IntegerAttr::get(type, value);
}

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_HFUSIONNAMES_H
