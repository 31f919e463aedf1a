//===- IndexingOps.cpp - verifiers ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Indexing/Indexing.h"

using namespace mlir;
using namespace mlir::hyperparallel::indexing;

#define GET_OP_CLASSES
#include "dialects/Indexing/IndexingOps.cpp.inc"

LogicalResult ScatterAddOp::verify() {
  auto updates = cast<RankedTensorType>(getUpdates().getType());
  auto indices = cast<RankedTensorType>(getIndices().getType());
  auto table = cast<RankedTensorType>(getInit().getType());
  for (RankedTensorType type : {updates, indices, table})
    if (!type.hasStaticShape())
      return emitOpError("expected static shapes but got ") << type;
  if (indices.getRank() != 1 ||
      !(indices.getElementType().isSignlessInteger() ||
        indices.getElementType().isIndex()))
    return emitOpError("expected integer indices of one dimension but got ")
           << indices;
  if (table.getRank() == 0 || !table.getElementType().isIntOrFloat() ||
      table.getElementType() != updates.getElementType())
    return emitOpError("expected updates of a table's numbers but got ")
           << updates << " for the table " << table;
  if (updates.getRank() == 0 || updates.getDimSize(0) != indices.getDimSize(0))
    return emitOpError("expected one update for each of ")
           << indices.getDimSize(0) << " indices but got " << updates;
  if (updates.getShape().drop_front() != table.getShape().drop_front())
    return emitOpError("expected updates of the size of a row of ")
           << table << " but got " << updates;
  return success();
}
