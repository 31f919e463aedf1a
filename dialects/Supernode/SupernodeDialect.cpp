//===- SupernodeDialect.cpp - registration, the module's machine ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Supernode/Supernode.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

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

static LogicalResult verifyMachine(Operation *op, Attribute value) {
  if (!isa<ModuleOp>(op))
    return op->emitError()
           << "expected `supernode.machine` on a module but got "
              "it on `"
           << op->getName() << '`';
  if (!isa<MachineAttr>(value))
    return op->emitError() << "expected `supernode.machine` to be a "
                              "#supernode.machine but got "
                           << value;
  return success();
}

/// The first device and how many.
static LogicalResult verifyDevices(Operation *op, Attribute value) {
  auto devices = dyn_cast<ArrayAttr>(value);
  auto at = [&](size_t index) { return dyn_cast<IntegerAttr>(devices[index]); };
  if (!devices || devices.size() != 2 || !at(0) || !at(1) ||
      at(0).getInt() < 0 || at(1).getInt() < 1)
    return op->emitError() << "expected `supernode.devices` to be [first, "
                              "count], a count of at least 1, but got "
                           << value;
  return success();
}

LogicalResult SupernodeDialect::verifyOperationAttribute(Operation *op,
                                                         NamedAttribute attr) {
  StringRef name = attr.getName().getValue();
  if (name == kMachineAttrName)
    return verifyMachine(op, attr.getValue());
  if (name != kProgramAttrName && name != kDevicesAttrName)
    return op->emitError() << "unknown attribute `" << name
                           << "` of the supernode dialect";
  if (!isa<FunctionOpInterface>(op))
    return op->emitError() << "expected `" << name
                           << "` on a function but got it on `" << op->getName()
                           << '`';
  if (name == kDevicesAttrName)
    return verifyDevices(op, attr.getValue());
  auto program = dyn_cast<StringAttr>(attr.getValue());
  if (!program || program.empty())
    return op->emitError() << "expected `supernode.program` to be a name but "
                              "got "
                           << attr.getValue();
  if (!op->hasAttr(kDevicesAttrName))
    return op->emitError() << "expected `supernode.devices` beside "
                              "`supernode.program`";
  return success();
}

LogicalResult SupernodeDialect::verifyRegionArgAttribute(Operation *op,
                                                         unsigned, unsigned,
                                                         NamedAttribute attr) {
  StringRef name = attr.getName().getValue();
  if (name != kTierAttrName)
    return op->emitError() << "unknown attribute `" << name
                           << "` of the supernode dialect on an argument";
  if (!isa<StringAttr>(attr.getValue()))
    return op->emitError() << "expected `supernode.tier` to be the name of a "
                              "tier but got "
                           << attr.getValue();
  return success();
}
