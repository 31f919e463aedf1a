//===- SupernodeOps.cpp - verifiers and interfaces of the ops -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Supernode/Supernode.h"

#include <cmath>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;

#define GET_OP_CLASSES
#include "dialects/Supernode/SupernodeOps.cpp.inc"

// C2.
LogicalResult
TaskOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                         ValueRange operands, DictionaryAttr attributes,
                         OpaqueProperties properties, RegionRange regions,
                         SmallVectorImpl<Type> &types) {
  TaskOpAdaptor adaptor(operands, attributes, properties, regions);
  llvm::append_range(types, adaptor.getOutputs().getTypes());
  return success();
}

OpCost TaskOp::getCost() {
  OpCost cost;
  cost.seconds = getSeconds().convertToDouble();
  if (auto flops = getFlops())
    cost.flops = flops->convertToDouble();
  if (auto bytes = getBytes())
    cost.bytesRead = bytes->convertToDouble();
  return cost;
}

LogicalResult TaskOp::verify() {
  // C1.
  for (auto [name, attr] :
       {std::pair("seconds", getSecondsAttr()),
        std::pair("flops", getFlopsAttr()), std::pair("bytes", getBytesAttr())})
    if (attr && !(attr.getValueAsDouble() >= 0 &&
                  std::isfinite(attr.getValueAsDouble())))
      return emitOpError() << "expected `" << name
                           << "` to be a finite number of at least 0 but got "
                           << attr;
  return success();
}
