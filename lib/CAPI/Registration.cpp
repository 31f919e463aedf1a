//===- Registration.cpp - C API: register dialects and passes -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/Registration.h"

#include "lib/Pipelines/Registration.h"
#include "mlir/CAPI/IR.h"

void hpRegisterDialects(MlirDialectRegistry registry) {
  mlir::hyperparallel::registerDialects(*unwrap(registry));
}

void hpRegisterPasses() { mlir::hyperparallel::registerPasses(); }
