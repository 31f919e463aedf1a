//===- EntryProgram.cpp - the program before it is split ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/EntryProgram.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

FailureOr<func::FuncOp> hypermpmd::getEntry(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal() || !main.getBody().hasOneBlock())
    return module.emitError("expected a function @main of one block");
  return main;
}

FailureOr<func::FuncOp> hypermpmd::getFragmentedEntry(ModuleOp module) {
  FailureOr<func::FuncOp> main = getEntry(module);
  if (failed(main))
    return failure();
  for (Operation &op : main->getBody().front().without_terminator())
    if (!isa<FragmentOp, TransferOp>(op)) {
      InFlightDiagnostic error =
          op.emitError("expected @main to consist of fragments and transfers "
                       "but got `")
          << op.getName() << '`';
      error.attachNote() << "run hypermpmd-form-fragments first";
      return error;
    }
  return main;
}

StringAttr hypermpmd::getMakingGroup(Value value) {
  if (auto fragment = value.getDefiningOp<FragmentOp>())
    return fragment.getGroupAttr();
  if (auto transfer = value.getDefiningOp<TransferOp>())
    return transfer.getTargetAttr();
  return {};
}

ArrayRef<Attribute> hypermpmd::getArgumentGroups(func::FuncOp main,
                                                 unsigned argument) {
  auto groups = main.getArgAttrOfType<ArrayAttr>(
      argument, HyperMPMDDialect::kGroupsAttrName);
  return groups ? groups.getValue() : ArrayRef<Attribute>();
}
