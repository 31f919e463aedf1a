//===- ActivationForms.h - Activations by their arithmetic ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTORUNTIME_ACTIVATIONFORMS_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTORUNTIME_ACTIVATIONFORMS_H

#include "mlir/IR/Value.h"

namespace mlir::hyperparallel {

/// The numbers are those of hp_activation.
enum class Activation { None, Relu, Gelu, GeluTanh, Silu };

/// As messages, options and reports spell it.
llvm::StringRef getActivationName(Activation activation);
std::optional<Activation> parseActivation(llvm::StringRef name);

/// The activation that the scalar `value` is of the scalar `argument`; none if
/// it is another function of it, or of something else, too.
Activation matchActivation(Value value, Value argument);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTORUNTIME_ACTIVATIONFORMS_H
