//===- LiftCollectives.cpp - collectives at borders of functions ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What: a collective of an argument that nothing else of the function reads is
//   done by the callers before the call; one whose result is only returned, by
//   the callers after it. There it can run beside other calls.
// In, out: local form. Functions that are called by plain calls alone.
// How: callees first, so that a collective rises through all callers whose
//   border it reaches. At each call a copy is written that carries the call's
//   path and phase: it says whose it is, and keeps collectives of one value
//   that two calls make apart, so that a gathered weight does not live from one
//   to the other.
// Cost: linear in functions, arguments and calls.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "dialects/Stream/Stream.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_LIFTCOLLECTIVESPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

namespace {
struct LiftCollectivesPass final
    : hypershard::impl::LiftCollectivesPassBase<LiftCollectivesPass> {
  void runOnOperation() override;

private:
  void visit(func::FuncOp function);
  void lift(func::FuncOp function);

  DenseMap<Operation *, SmallVector<func::CallOp>> calls;
  llvm::DenseSet<Operation *> seen, referenced;
  SymbolTable *symbols = nullptr;
};

/// What one function gives to its callers, by argument and by result.
struct Lifted {
  SmallVector<Operation *> before, after;
};
} // namespace

/// Moves data between devices, in its local form.
static bool communicates(Operation *op) {
  return isa_and_nonnull<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp,
                         PermuteOp, HaloExchangeOp>(op) &&
         !op->hasAttr(HyperShardDialect::kShardingAttrName);
}

/// The collectives at the function's borders.
static Lifted findLifted(func::FuncOp function) {
  Block &body = function.getBody().front();
  Lifted lifted;
  llvm::DenseSet<Operation *> taken;
  for (BlockArgument argument : body.getArguments()) {
    Operation *user =
        argument.hasOneUse() ? *argument.getUsers().begin() : nullptr;
    bool lifts = communicates(user) && user->getBlock() == &body;
    lifted.before.push_back(lifts ? user : nullptr);
    if (lifts)
      taken.insert(user);
  }
  for (Value value : body.getTerminator()->getOperands()) {
    Operation *maker = value.getDefiningOp();
    bool lifts = communicates(maker) && maker->getBlock() == &body &&
                 value.hasOneUse() && !taken.contains(maker);
    lifted.after.push_back(lifts ? maker : nullptr);
  }
  return lifted;
}

/// A copy for a call, of the operand that it has there.
static Value copyFor(func::CallOp call, OpBuilder &builder, Operation *op,
                     Value operand) {
  IRMapping mapping;
  mapping.map(op->getOperand(0), operand);
  Operation *copy = builder.clone(*op, mapping);
  for (StringRef name : {"hp.path", "hp.phase"})
    if (Attribute value = call->getAttr(name))
      copy->setAttr(name, value);
  return copy->getResult(0);
}

static void rewriteCall(func::CallOp call, const Lifted &lifted,
                        TypeRange results) {
  OpBuilder builder(call);
  for (auto [number, op] : llvm::enumerate(lifted.before))
    if (op)
      call->setOperand(number,
                       copyFor(call, builder, op, call.getOperand(number)));
  auto made = func::CallOp::create(builder, call.getLoc(), call.getCallee(),
                                   results, call.getOperands());
  made->setDiscardableAttrs(call->getDiscardableAttrDictionary());
  for (auto [number, op] : llvm::enumerate(lifted.after)) {
    Value value = made.getResult(number);
    if (op)
      value = copyFor(call, builder, op, value);
    call.getResult(number).replaceAllUsesWith(value);
  }
  call.erase();
}

void LiftCollectivesPass::lift(func::FuncOp function) {
  if (!function.isPrivate() || referenced.contains(function) ||
      !function.getBody().hasOneBlock() || calls[function].empty())
    return;
  Lifted lifted = findLifted(function);
  auto count = [](ArrayRef<Operation *> ops) {
    return llvm::count_if(ops, [](Operation *op) { return op != nullptr; });
  };
  if (count(lifted.before) + count(lifted.after) == 0)
    return;
  numBefore += count(lifted.before);
  numAfter += count(lifted.after);
  Block &body = function.getBody().front();
  Operation *terminator = body.getTerminator();
  SmallVector<Type> arguments(function.getArgumentTypes());
  SmallVector<Type> results(function.getResultTypes());
  for (auto [number, op] : llvm::enumerate(lifted.before))
    if (op)
      arguments[number] = op->getResult(0).getType();
  for (auto [number, op] : llvm::enumerate(lifted.after))
    if (op)
      results[number] = op->getOperand(0).getType();
  // Calls of a function that is done may be anywhere: in functions that are
  // visited later, as callers are.
  for (func::CallOp call : calls[function])
    rewriteCall(call, lifted, results);
  for (auto [number, op] : llvm::enumerate(lifted.after))
    if (op) {
      terminator->setOperand(number, op->getOperand(0));
      op->erase();
    }
  for (auto [number, op] : llvm::enumerate(lifted.before))
    if (op) {
      BlockArgument argument = body.getArgument(number);
      argument.setType(arguments[number]);
      op->getResult(0).replaceAllUsesWith(argument);
      op->erase();
    }
  function.setFunctionType(
      FunctionType::get(&getContext(), arguments, results));
}

/// Callees first.
void LiftCollectivesPass::visit(func::FuncOp function) {
  if (!seen.insert(function).second || function.isExternal())
    return;
  llvm::SetVector<Operation *> callees;
  function.walk([&](func::CallOp call) {
    if (auto callee = symbols->lookup<func::FuncOp>(call.getCallee()))
      callees.insert(callee);
  });
  for (Operation *callee : callees)
    visit(cast<func::FuncOp>(callee));
  // What callees gave has been written by now; new calls took the old ones'
  // places.
  lift(function);
}

void LiftCollectivesPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (module->hasAttr(stream::StreamDialect::kSynchronousAttrName))
    return markAllAnalysesPreserved();
  SymbolTable table(module);
  symbols = &table;
  calls.clear();
  seen.clear();
  referenced.clear();
  if (auto uses = SymbolTable::getSymbolUses(&module.getBodyRegion()))
    for (const SymbolTable::SymbolUse &use : *uses) {
      Operation *callee = table.lookup(use.getSymbolRef().getRootReference());
      if (!callee)
        continue;
      if (auto call = dyn_cast<func::CallOp>(use.getUser()))
        calls[callee].push_back(call);
      else
        referenced.insert(callee);
    }
  for (auto function : module.getOps<func::FuncOp>())
    visit(function);
}
