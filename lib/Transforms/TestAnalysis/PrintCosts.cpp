//===- PrintCosts.cpp - test-print-costs ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Analysis/CostReport.h"
#include "lib/Transforms/TestAnalysis/Passes.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_PRINTCOSTSPASS
#include "lib/Transforms/TestAnalysis/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using namespace mlir::hyperparallel;

namespace {
struct PrintCostsPass
    : mlir::hyperparallel::impl::PrintCostsPassBase<PrintCostsPass> {
  using PrintCostsPassBase::PrintCostsPassBase;

  void runOnOperation() override {
    CostModel model(getOperation());
    if (json) {
      printCostsAsJson(getOperation(), model, llvm::outs());
      llvm::outs() << '\n';
    } else {
      printCosts(getOperation(), model, llvm::outs());
    }
    markAllAnalysesPreserved();
  }
};
} // namespace
