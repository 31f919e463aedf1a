//===- FormDeviceKernels.cpp - Linalg on buffers to kernels of a device ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  linalg, memref, scf, func and arith on buffers; static loops.
// Contract out: no linalg but contractions. Every group of `formKernelGroups`
//   is a call of a private function @kernel(buffers…, scalars…) that carries
//   `hp.kernel` and `hp.geometry = [blocks, threads]`, and means what all
//   threads of all blocks do together.
//
//   1. A constant that something other than a kernel reads is copied to a
//      buffer of the device.
//   2. How a group runs is decided by its loops:
//        elements   every loop of every member is parallel and shared: a thread
//                   does 16 bytes' worth of neighbours, so that the accesses of
//                   a warp are contiguous and vectors;
//        tiles      the same, but an input is contiguous along another loop
//                   than the results: a block does a square of the two loops.
//                   It fetches the input to shared memory along the one, and
//                   computes along the other, both in vectors;
//        columns    one op that reduces along other than the contiguous loop: a
//                   thread does one result;
//        rows       a block does one iteration of the outer loops, and its
//                   threads share the innermost loop of each member (LoopNest),
//                   16 bytes' worth of neighbours at a time;
//        serial     a thread does one iteration of the outer loops. For what
//                   has no single combiner, such as argmax.
//      What would run rows one after the other inside, or write across the
//      others' results, is a group of its own.
//   3. A buffer that only the group touches, within one iteration of the outer
//      loops, becomes registers, or in rows shared memory. So does what several
//      members of a row read: it is fetched once; and what they write for
//      others and read again: it is copied out at the end.
//   4. A loop that looks up in the device's memory where it goes on is a kernel
//      (SerialLoops.h).
//   5. Equal kernels are written once.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/DeviceKernelWriter.h"
#include "lib/Conversion/LinalgToDevice/SerialLoops.h"
#include "lib/Conversion/LinalgToKernels/KernelTable.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_FORMDEVICEKERNELS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct FormDeviceKernelsPass
    : impl::FormDeviceKernelsBase<FormDeviceKernelsPass> {
  void runOnOperation() override;
  LogicalResult rewriteGroup(KernelGroup &group, StringRef parentName,
                             KernelTable &kernels);
  void rewriteLoop(const SerialLoop &serial, StringRef parentName,
                   KernelTable &kernels);
};
} // namespace

/// PTX knows letters, digits and `_` in names; those of functions may have dots
/// (several modules in one program).
static std::string getKernelName(StringRef parentName, StringRef suffix) {
  std::string name = (parentName + suffix).str();
  for (char &letter : name)
    if (!llvm::isAlnum(letter))
      letter = '_';
  return name;
}

LogicalResult FormDeviceKernelsPass::rewriteGroup(KernelGroup &group,
                                                  StringRef parentName,
                                                  KernelTable &kernels) {
  if (failed(checkDeviceLoops(group)))
    return failure();
  DevicePlan plan = decideDevicePlan(group);
  std::string name = getKernelName(parentName, "_kernel");
  DeviceKernelWriter writer(getOperation(), group, plan, name);
  auto [kernel, isNew] = kernels.insert(writer.write());
  (isNew ? numKernels : numShared) += 1;
  if (isNew)
    (plan.manner == Manner::Elements  ? numElements
     : plan.manner == Manner::Tiles   ? numTiles
     : plan.manner == Manner::Columns ? numColumns
     : plan.manner == Manner::Rows    ? numRows
                                      : numSerial) += 1;
  LinalgOp last = group.members.back().op;
  OpBuilder builder(last);
  if (plan.iterations > 0)
    func::CallOp::create(builder, last.getLoc(), kernel, writer.getCaptures());
  for (KernelMember &member : group.members)
    member.op->erase();
  for (memref::AllocOp alloc : writer.getLocalBuffers())
    alloc->erase();
  return success();
}

void FormDeviceKernelsPass::rewriteLoop(const SerialLoop &serial,
                                        StringRef parentName,
                                        KernelTable &kernels) {
  SmallVector<Value> arguments;
  std::string name = getKernelName(parentName, "_loop");
  auto [kernel, isNew] =
      kernels.insert(writeSerialLoop(getOperation(), serial, name, arguments));
  (isNew ? numKernels : numShared) += 1;
  numLoops += isNew;
  scf::ForOp loop = serial.loop;
  OpBuilder builder(loop);
  func::CallOp::create(builder, loop.getLoc(), kernel, arguments);
  loop->erase();
}

/// Gives what is no kernel (matmuls, calls, returns) a copy of the constant
/// that is in the device's memory.
static void copyConstants(func::FuncOp function) {
  SmallVector<memref::GetGlobalOp> constants;
  function.walk([&](memref::GetGlobalOp op) { constants.push_back(op); });
  auto readsInKernel = [](Operation *user) {
    while (user && !isa<LinalgOp>(user))
      user = user->getParentOp();
    return user && !isRuntimeContraction(user);
  };
  for (memref::GetGlobalOp constant : constants) {
    if (llvm::all_of(constant->getUsers(), readsInKernel))
      continue;
    OpBuilder builder(constant->getBlock(), ++constant->getIterator());
    auto type = cast<MemRefType>(constant.getType());
    Value buffer = memref::AllocOp::create(builder, constant.getLoc(), type,
                                           builder.getI64IntegerAttr(64));
    auto copy = linalg::CopyOp::create(builder, constant.getLoc(),
                                       constant.getResult(), buffer);
    constant.getResult().replaceUsesWithIf(buffer, [&](OpOperand &use) {
      return use.getOwner() != copy && !readsInKernel(use.getOwner());
    });
  }
}

void FormDeviceKernelsPass::runOnOperation() {
  if (failed(verifyOnBuffers(getOperation())))
    return signalPassFailure();
  KernelTable kernels(getOperation());
  for (func::FuncOp function : getProgramFunctions(getOperation())) {
    writeCopiesAsLinalg(function);
    copyConstants(function);
    for (const SerialLoop &serial : findSerialLoops(function))
      rewriteLoop(serial, function.getSymName(), kernels);
    for (Block *block : getKernelBlocks(function))
      for (KernelGroup &group : formKernelGroups(*block)) {
        SmallVector<KernelGroup> parts;
        while (std::optional<KernelGroup> taken = takeMisfit(group))
          parts.push_back(std::move(*taken));
        parts.push_back(std::move(group));
        for (KernelGroup &part : llvm::reverse(parts))
          if (failed(rewriteGroup(part, function.getSymName(), kernels)))
            return signalPassFailure();
      }
  }
}

} // namespace mlir::hyperparallel
