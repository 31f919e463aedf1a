//===- hp-opt.cpp - the pass driver ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Pipelines/Registration.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  mlir::hyperparallel::registerDialects(registry);
  mlir::hyperparallel::registerPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "HyperParallel pass driver\n", registry));
}
