//===- DeviceToLLVM.cpp - Kernels of a device to the LLVM dialect --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  a module of `hp.kernel` functions: func, cf, arith, math,
//   memref (no subviews), index, llvm.
// Contract out: the LLVM dialect; kernels have the calling convention of PTX's
//   entries, and `hp.threads` says of how many threads their blocks are.
//
//   1. What kernels ask about their threads (DeviceThreads.h) becomes NVVM's
//      intrinsics.
//   2. A thread that fails an assertion leaves its number and returns.
//   3. Conversion with bare pointers, which are aligned to 16 bytes: vectors
//      may be loaded from them. Booleans are bytes.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/DeviceThreads.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeToLLVM/CodeToLLVM.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CONVERTDEVICETOLLVM
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

/// Leaves the kernel where the assertion fails.
static void lowerAssertion(cf::AssertOp op, Value word) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Block *before = op->getBlock();
  Block *after = before->splitBlock(op->getNextNode());
  Block *failure =
      builder.createBlock(before->getParent(), before->getParent()->end());
  Value number = LLVM::ConstantOp::create(
      builder, loc, op->getAttrOfType<IntegerAttr>("hp.assertion"));
  LLVM::StoreOp::create(builder, loc, number, word, /*alignment=*/4,
                        /*isVolatile=*/true);
  func::ReturnOp::create(builder, loc);
  builder.setInsertionPointToEnd(before);
  cf::CondBranchOp::create(builder, loc, op.getArg(), after, failure);
  op->erase();
}

/// What a kernel asks about its threads, in NVVM's words.
static void answerDeviceCall(func::CallOp call) {
  OpBuilder builder(call);
  Location loc = call.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), value);
  };
  auto ask = [&](StringRef intrinsic, ArrayRef<Value> operands) {
    auto name = builder.getStringAttr("llvm.nvvm." + intrinsic);
    if (call.getNumResults() == 0)
      return LLVM::CallIntrinsicOp::create(builder, loc, name, operands);
    return LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(),
                                         name, operands);
  };
  StringRef callee = call.getCallee();
  LLVM::CallIntrinsicOp answer;
  if (callee == kDeviceThread)
    answer = ask("read.ptx.sreg.tid.x", {});
  else if (callee == kDeviceBlock)
    answer = ask("read.ptx.sreg.ctaid.x", {});
  else if (callee == kDeviceBarrier)
    answer = ask("barrier.cta.sync.aligned.all", {constant(0)});
  else if (callee == kDeviceExchange)
    answer =
        ask("shfl.sync.bfly.i32", {constant(-1), call.getOperand(0),
                                   call.getOperand(1), constant(kWarp - 1)});
  else
    return;
  call->replaceAllUsesWith(answer->getResults());
  call->erase();
}

namespace {
struct ConvertDeviceToLLVMPass
    : impl::ConvertDeviceToLLVMBase<ConvertDeviceToLLVMPass> {
  void runOnOperation() override;
};
} // namespace

void ConvertDeviceToLLVMPass::runOnOperation() {
  ModuleOp module = getOperation();
  llvm::StringMap<int64_t> threads;
  SmallVector<func::CallOp> calls;
  module.walk([&](func::CallOp call) { calls.push_back(call); });
  llvm::for_each(calls, answerDeviceCall);
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function.isExternal() && function.getName().starts_with("hp_device_"))
      function->erase();
  for (auto function : module.getOps<func::FuncOp>()) {
    auto geometry = function->getAttrOfType<DenseI64ArrayAttr>("hp.geometry");
    if (!function->hasAttr("hp.kernel") || !geometry || geometry.size() != 2) {
      function.emitError("expected a kernel of a device (hp.kernel, "
                         "hp.geometry) but got another function");
      return signalPassFailure();
    }
    threads[function.getSymName()] = geometry.asArrayRef()[1];
    SmallVector<cf::AssertOp> assertions;
    function.walk([&](cf::AssertOp op) { assertions.push_back(op); });
    for (cf::AssertOp op : assertions)
      if (!op->getAttrOfType<IntegerAttr>("hp.assertion") ||
          function.getNumArguments() == 0 ||
          !isa<LLVM::LLVMPointerType>(function.getArgumentTypes().back())) {
        op.emitError("expected an assertion with a number (hp.assertion), and "
                     "the place for it as the kernel's last argument");
        return signalPassFailure();
      }
    for (cf::AssertOp op : assertions)
      lowerAssertion(op, function.getArguments().back());
    for (unsigned number = 0; number < function.getNumArguments(); ++number)
      if (isa<MemRefType>(function.getArgumentTypes()[number]))
        function.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                            Builder(module).getI64IntegerAttr(16));
    function.setPublic();
  }
  if (failed(convertCodeToLLVM(
          module, [](LLVMTypeConverter &, RewritePatternSet &) {})))
    return signalPassFailure();
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto found = threads.find(function.getSymName());
    if (found == threads.end())
      continue;
    function.setCConv(LLVM::cconv::CConv::PTX_Kernel);
    function->setAttr("hp.threads",
                      Builder(module).getI64IntegerAttr(found->second));
    ++numKernels;
  }
}

} // namespace mlir::hyperparallel
