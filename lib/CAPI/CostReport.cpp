//===- CostReport.cpp - C API: the cost of a program ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/CostReport.h"

#include "lib/Analysis/CostReport.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Utils.h"

using namespace mlir;
using namespace mlir::hyperparallel;

void hpCostReport(MlirModule module, MlirStringCallback callback,
                  void *userData) {
  mlir::detail::CallbackOstream stream(callback, userData);
  CostModel model(unwrap(module));
  printCostsAsJson(unwrap(module), model, stream);
}
