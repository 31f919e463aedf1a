//===- IndexingDialect.cpp - registration ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Indexing/Indexing.h"

using namespace mlir;
using namespace mlir::hyperparallel::indexing;

#include "dialects/Indexing/IndexingDialect.cpp.inc"

void IndexingDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Indexing/IndexingOps.cpp.inc"
      >();
}
