//===- CostOpInterface.cpp - what an op costs -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/CostOpInterface.h"

using namespace mlir;
using namespace mlir::hyperparallel;

#include "dialects/Interfaces/CostOpInterface.cpp.inc"

int64_t mlir::hyperparallel::byteSize(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  Type element = shaped ? shaped.getElementType() : type;
  int64_t bytes = element.isIndex() ? 8
                  : element.isIntOrFloat()
                      ? (element.getIntOrFloatBitWidth() + 7) / 8
                      : 0;
  if (!shaped)
    return bytes;
  return shaped.hasStaticShape() ? shaped.getNumElements() * bytes : 0;
}
