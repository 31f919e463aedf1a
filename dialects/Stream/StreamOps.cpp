//===- StreamOps.cpp - verifiers ------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Stream/Stream.h"

#include "mlir/Interfaces/CallInterfaces.h"

using namespace mlir;
using namespace mlir::hyperparallel::stream;

#define GET_OP_CLASSES
#include "dialects/Stream/StreamOps.cpp.inc"

LogicalResult OnOp::verify() {
  // C1
  Block &block = getBody().front();
  if (!llvm::hasSingleElement(block) || !isa<CallOpInterface>(block.front()) ||
      block.front().getNumResults() != 0)
    return emitOpError("expected its body to be one call that returns nothing");
  // C2
  if (getStream().isCompute())
    return emitOpError("expected a stream beside compute, where ops are that "
                       "are in no `stream.on`");
  return success();
}

LogicalResult WaitOp::verify() {
  // C1
  auto record = getMark().getDefiningOp<RecordOp>();
  if (!record)
    return emitOpError("expected the mark of a `stream.record`");
  if (record.getStream() == getStream())
    return emitOpError("expected a mark of another stream but got one of ")
           << record.getStream() << " itself, whose ops happen in order";
  return success();
}
