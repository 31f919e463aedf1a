//===- SupernodeDialect.cpp - registration, the module's machine ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Supernode/Supernode.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;

#include "dialects/Supernode/SupernodeDialect.cpp.inc"

void SupernodeDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Supernode/SupernodeOps.cpp.inc"
      >();
}

MachineAttr supernode::getMachine(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  for (; module; module = module->getParentOfType<ModuleOp>())
    if (auto machine = module->getAttrOfType<MachineAttr>(
            SupernodeDialect::kMachineAttrName))
      return machine;
  return {};
}

LogicalResult SupernodeDialect::verifyOperationAttribute(Operation *op,
                                                         NamedAttribute attr) {
  if (attr.getName() != kMachineAttrName)
    return op->emitError() << "unknown attribute `" << attr.getName().getValue()
                           << "` of the supernode dialect";
  if (!isa<ModuleOp>(op))
    return op->emitError()
           << "expected `supernode.machine` on a module but got "
              "it on `"
           << op->getName() << '`';
  if (!isa<MachineAttr>(attr.getValue()))
    return op->emitError() << "expected `supernode.machine` to be a "
                              "#supernode.machine but got "
                           << attr.getValue();
  return success();
}
