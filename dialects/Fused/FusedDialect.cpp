//===- FusedDialect.cpp - registration ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Fused/Fused.h"

using namespace mlir;
using namespace mlir::hyperparallel::fused;

#include "dialects/Fused/FusedDialect.cpp.inc"

void FusedDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Fused/FusedOps.cpp.inc"
      >();
}
