//===- CostOpInterface.cpp - what an op costs -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/CostOpInterface.h"

using namespace mlir;
using namespace mlir::hyperparallel;

#include "dialects/Interfaces/CostOpInterface.cpp.inc"

/// What is larger counts as so large; an import is refused.
static constexpr int64_t kMostBytes = int64_t(1) << 56;

int64_t mlir::hyperparallel::byteSize(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  Type element = shaped ? shaped.getElementType() : type;
  int64_t bytes = element.isIndex() ? 8
                  : element.isIntOrFloat()
                      ? (element.getIntOrFloatBitWidth() + 7) / 8
                      : 0;
  if (!shaped)
    return bytes;
  if (!shaped.hasStaticShape())
    return 0;
  // Sums of sizes stay within 64 bits.
  for (int64_t size : shaped.getShape())
    if (size == 0)
      return 0;
  for (int64_t size : shaped.getShape())
    bytes = size > kMostBytes / std::max<int64_t>(bytes, 1) ? kMostBytes
                                                            : bytes * size;
  return bytes;
}
