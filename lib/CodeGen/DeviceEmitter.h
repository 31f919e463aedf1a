//===- DeviceEmitter.h - Kernels in the LLVM dialect to PTX -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CODEGEN_DEVICEEMITTER_H
#define HYPERPARALLEL_LIB_CODEGEN_DEVICEEMITTER_H

#include "lib/CodeGen/ObjectCache.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::hyperparallel {

/// Compiles kernels (the module @hp_device of `hp-lower-to-device`) to PTX for
/// an architecture such as sm_80, and all later ones. Reports errors at the
/// module.
FailureOr<std::string> emitPTX(ModuleOp kernels, StringRef architecture,
                               const ObjectCache &cache);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CODEGEN_DEVICEEMITTER_H
