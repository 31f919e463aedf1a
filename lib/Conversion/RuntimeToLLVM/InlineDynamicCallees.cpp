//===- InlineDynamicCallees.cpp - Calls that no bare pointer can make -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  func on buffers, structured control flow.
// Contract out: no function takes a buffer of dynamic shape.
//
// A buffer is passed as one pointer, so that its shape must be in its type.
// What upstream's buffer deallocation writes where only the run decides who
// owns a buffer (loops and branches that carry tensors) calls a helper on lists
// of any length. Its body takes the place of each call; the lengths are static
// there.
//
// Cost: linear in the calls times the body, which is small.
// Limits: bodies of one block, not recursive.
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_INLINEDYNAMICCALLEES
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

static bool takesDynamicBuffer(func::FuncOp function) {
  return llvm::any_of(function.getArgumentTypes(), [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return memref && !memref.hasStaticShape();
  });
}

/// Says why the function cannot take the place of its calls, if so.
static LogicalResult checkInlinable(func::FuncOp function) {
  auto expected = [&](StringRef what) {
    return function.emitError("expected a function on buffers of dynamic shape "
                              "to ")
           << what << ", so that it can be written where it is called";
  };
  if (!function.isPrivate())
    return expected("be private");
  if (!function.getBody().hasOneBlock())
    return expected("have one block");
  bool callsItself = false;
  function.walk([&](func::CallOp call) {
    callsItself |= call.getCallee() == function.getSymName();
  });
  if (callsItself)
    return expected("not call itself");
  return success();
}

static void inlineBody(func::CallOp call, func::FuncOp callee) {
  OpBuilder builder(call);
  Block &body = callee.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), call.getOperands());
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  for (auto [result, value] :
       llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  call.erase();
}

namespace {
struct InlineDynamicCalleesPass
    : impl::InlineDynamicCalleesBase<InlineDynamicCalleesPass> {
  using InlineDynamicCalleesBase::InlineDynamicCalleesBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> callees;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && takesDynamicBuffer(function))
        callees.push_back(function);
    for (func::FuncOp callee : callees) {
      if (failed(checkInlinable(callee)))
        return signalPassFailure();
      std::optional<SymbolTable::UseRange> uses =
          callee.getSymbolUses(getOperation());
      for (const SymbolTable::SymbolUse &use : *uses) {
        auto call = dyn_cast<func::CallOp>(use.getUser());
        if (!call) {
          use.getUser()->emitError("expected @")
              << callee.getSymName()
              << ", which takes buffers of dynamic shape, to be called only";
          return signalPassFailure();
        }
        inlineBody(call, callee);
        ++numInlined;
      }
      callee.erase();
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
