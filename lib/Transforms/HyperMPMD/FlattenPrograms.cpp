//===- FlattenPrograms.cpp - the programs of all groups in one module -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: a nested module of each group. Out: their functions and meshes in the
// module itself, as the simulator reads programs of several groups. The symbol
// S of group g becomes `g.S`, and @main of it @g.
//
// Cost: a sweep of the group's module for each of its symbols.
//===----------------------------------------------------------------------===//
#include "dialects/Supernode/Supernode.h"
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/Passes.h"

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_FLATTENPROGRAMSPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;
using supernode::SupernodeDialect;

namespace {
struct FlattenProgramsPass
    : hypermpmd::impl::FlattenProgramsPassBase<FlattenProgramsPass> {
  LogicalResult flatten(ModuleOp program, StringAttr group);
  void runOnOperation() override;
};
} // namespace

LogicalResult FlattenProgramsPass::flatten(ModuleOp program, StringAttr group) {
  FailureOr<func::FuncOp> main = getEntry(program);
  if (failed(main))
    return failure();
  TopologyAttr topology = getTopology(program);
  GroupAttr devices = topology.getGroup(group.getValue());
  Builder builder(&getContext());
  (*main)->setAttr(SupernodeDialect::kProgramAttrName, group);
  (*main)->setAttr(
      SupernodeDialect::kDevicesAttrName,
      builder.getI64ArrayAttr({topology.getFirstDevice(group.getValue()),
                               devices.getMesh().getNumDevices()}));
  for (Operation &op : *program.getBody()) {
    auto name = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    if (!name)
      continue;
    auto renamed =
        &op == main->getOperation()
            ? group
            : builder.getStringAttr(group.getValue() + "." + name.getValue());
    if (failed(SymbolTable::replaceAllSymbolUses(name, renamed, program)))
      return op.emitError("expected every use of @")
             << name.getValue() << " to be known";
    SymbolTable::setSymbolName(&op, renamed);
    if (isa<func::FuncOp>(op))
      op.setAttr(HyperMPMDDialect::kGroupAttrName, group);
  }
  getOperation()->setAttr(HyperMPMDDialect::kTopologyAttrName, topology);
  program->remove();
  SymbolTable symbols(getOperation());
  for (Operation &op : llvm::make_early_inc_range(*program.getBody())) {
    op.remove();
    StringAttr name =
        op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    if (name && symbols.lookup(name)) {
      getOperation().emitError("expected the name @")
          << name.getValue() << " to be free; rename a device group";
      op.erase();
      program->erase();
      return failure();
    }
    getOperation().push_back(&op);
  }
  program->erase();
  return success();
}

void FlattenProgramsPass::runOnOperation() {
  SmallVector<ModuleOp> programs(getOperation().getOps<ModuleOp>());
  for (ModuleOp program : programs)
    if (auto group = program->getAttrOfType<StringAttr>(
            HyperMPMDDialect::kGroupAttrName))
      if (failed(flatten(program, group)))
        return signalPassFailure();
}
