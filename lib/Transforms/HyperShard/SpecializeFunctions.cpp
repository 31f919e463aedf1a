//===- SpecializeFunctions.cpp - a function per way of being called -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: callers that annotate a function's operands or results differently get
//   functions of their own, and the annotations move into the function.
// In: annotations on values of the program. Out: all calls of a function have
//   equal annotations, and its arguments carry them.
// How: functions are visited from those that nobody calls, each after all its
//   callers. The calls of a function are grouped by *signature*: the sharding
//   on each operand's and result's value. The first group keeps the function,
//   every other gets a clone.
// Cost: linear in ops, times the number of different signatures of a function.
// Limits: recursion is refused.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "mlir/Analysis/CallGraph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SCCIterator.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_SPECIALIZEFUNCTIONSPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel::hypershard;

/// Null entries: nothing was said.
using Signature = SmallVector<Attribute>;

static ShardingAttr annotationOf(Value value) {
  if (auto constraint = value.getDefiningOp<ConstraintOp>())
    return constraint.getSharding();
  return getSharding(value);
}

static Signature signatureOf(func::CallOp call) {
  Signature signature;
  for (Value operand : call.getOperands())
    signature.push_back(annotationOf(operand));
  for (Value result : call.getResults())
    signature.push_back(getSharding(result));
  return signature;
}

/// The signature becomes the function's own, except where it has one.
static void annotate(func::FuncOp function, const Signature &signature) {
  for (auto [index, argument] : llvm::enumerate(function.getArguments()))
    if (auto sharding = dyn_cast_or_null<ShardingAttr>(signature[index]);
        sharding && !getSharding(argument))
      setSharding(argument, sharding);
}

/// Functions of the module, callers before callees; fails on recursion.
static FailureOr<SmallVector<func::FuncOp>> callersFirst(ModuleOp module) {
  SmallVector<func::FuncOp> order;
  const CallGraph graph(module);
  for (auto scc = llvm::scc_begin(&graph); !scc.isAtEnd(); ++scc) {
    for (CallGraphNode *node : *scc) {
      if (node->isExternal())
        continue;
      auto function =
          dyn_cast<func::FuncOp>(node->getCallableRegion()->getParentOp());
      if (!function)
        continue;
      if (scc.hasCycle())
        return function.emitError("recursive functions are not supported: @")
               << function.getSymName() << " reaches itself";
      order.push_back(function);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

namespace {
struct SpecializeFunctionsPass final
    : mlir::hyperparallel::hypershard::impl::SpecializeFunctionsPassBase<
          SpecializeFunctionsPass> {
  void runOnOperation() override {
    FailureOr<SmallVector<func::FuncOp>> order = callersFirst(getOperation());
    if (failed(order))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    // Calls of each function, in its callers' order; clones' calls included.
    llvm::MapVector<StringRef, SmallVector<func::CallOp>> calls;
    auto collect = [&](func::FuncOp function) {
      function.walk([&](func::CallOp call) {
        if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee()))
          calls[callee.getSymName()].push_back(call);
      });
    };
    for (func::FuncOp function : *order) {
      llvm::MapVector<ArrayAttr, func::FuncOp> variants;
      for (func::CallOp call : calls.lookup(function.getSymName())) {
        Signature signature = signatureOf(call);
        for (Attribute &part : signature)
          if (!part)
            part = UnitAttr::get(&getContext());
        auto key = ArrayAttr::get(&getContext(), signature);
        auto [it, isNew] = variants.try_emplace(key, function);
        if (isNew && variants.size() > 1) {
          it->second = function.clone();
          symbols.insert(it->second);
          ++numSpecialized;
        }
        if (isNew)
          pending.push_back({it->second, signature});
        call.setCallee(it->second.getSymName());
      }
      for (auto &[variant, signature] : pending)
        annotate(variant, signature);
      pending.clear();
      for (auto &[key, variant] : variants)
        collect(variant);
      if (variants.empty())
        collect(function);
    }
  }

private:
  /// Variants of the function at hand, annotated when all clones are made.
  SmallVector<std::pair<func::FuncOp, Signature>> pending;
};
} // namespace
