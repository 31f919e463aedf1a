//===- Counts.h - what passes count by their reasons ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_COUNTS_H
#define HYPERPARALLEL_LIB_CONVERSION_COUNTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace mlir::hyperparallel {

/// How often each was said, as an attribute of the module, which `hp compile
/// --json` shows; none where nothing was.
inline void setCounts(ModuleOp module, StringRef name,
                      const std::map<std::string, int64_t> &counts) {
  if (counts.empty())
    return;
  Builder builder(module.getContext());
  NamedAttrList told;
  for (const auto &[what, count] : counts)
    told.append(what, builder.getI64IntegerAttr(count));
  module->setAttr(name, told.getDictionary(module.getContext()));
}

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_COUNTS_H
