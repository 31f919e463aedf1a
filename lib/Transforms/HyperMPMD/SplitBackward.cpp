//===- SplitBackward.cpp - gradients of inputs before those of weights ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: @main with calls whose hp.phase is backward. Out: each is two calls, of
// phases backward_input and backward_weight: the stage before waits for the
// first alone.
//
//   1. A result is a gradient of an input if a backward call reads it, maybe
//      through other ops, in any of the calls of its function.
//   2. The ops that such results need are the first function. All others are
//      the second, which takes what it reads of the first as arguments;
//      constants and empty tensors it makes anew.
//   3. A function with one kind of results only is not cut, its calls change
//      their phase.
//
// Cost: linear in the functions, once for each, and in the calls.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/FunctionParts.h"
#include "lib/Transforms/HyperMPMD/Passes.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_SPLITBACKWARDPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
/// A function in two parts. Arguments of the second: of the function, then
/// values of the first part.
struct Halves {
  func::FuncOp input, weight;
  SmallVector<unsigned> weightArguments;
  unsigned numCrossing = 0;
};

struct SplitBackwardPass
    : hypermpmd::impl::SplitBackwardPassBase<SplitBackwardPass> {
  using SplitBackwardPassBase::SplitBackwardPassBase;

  Halves split(func::FuncOp function, const llvm::BitVector &isInput);
  void rewrite(func::CallOp call, const llvm::BitVector &isInput,
               const Halves &halves);
  void runOnOperation() override;
};
} // namespace

static bool isBackward(Operation *op) {
  auto phase = op->getAttrOfType<StringAttr>("hp.phase");
  return phase && phase.getValue() == "backward";
}

/// Does a backward call read the value, through ops that are no such calls?
static bool feedsBackward(Value value, DenseMap<Value, bool> &known) {
  auto [it, isNew] = known.try_emplace(value, false);
  if (!isNew)
    return it->second;
  bool feeds = llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isa<func::CallOp>(user))
      return isBackward(user);
    return llvm::any_of(user->getResults(), [&](Value result) {
      return feedsBackward(result, known);
    });
  });
  known[value] = feeds;
  return feeds;
}

static bool isFree(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() ||
         op->getName().getStringRef() == "tensor.empty";
}

Halves SplitBackwardPass::split(func::FuncOp function,
                                const llvm::BitVector &isInput) {
  Block &body = function.getBody().front();
  SmallVector<Value> inputResults, weightResults;
  for (auto [index, value] :
       llvm::enumerate(body.getTerminator()->getOperands()))
    (isInput[index] ? inputResults : weightResults).push_back(value);
  auto first = sliceOf(body, inputResults);
  auto needed = sliceOf(body, weightResults);
  auto isSecond = [&](Operation *op) {
    return needed.contains(op) && (!first.contains(op) || isFree(op));
  };
  llvm::SetVector<Value> crossing, arguments;
  auto note = [&](Value value) {
    Operation *maker = value.getDefiningOp();
    if (!maker && cast<BlockArgument>(value).getOwner() == &body)
      arguments.insert(value);
    else if (maker && maker->getBlock() == &body && !isSecond(maker))
      crossing.insert(value);
  };
  for (Operation &op : body.without_terminator())
    if (isSecond(&op))
      llvm::for_each(readValues(&op), note);
  llvm::for_each(weightResults, note);

  Halves halves;
  halves.numCrossing = crossing.size();
  SmallVector<Value> all(body.getArguments());
  SmallVector<Value> firstResults = inputResults;
  llvm::append_range(firstResults, crossing);
  halves.input = makePart(function, "_input", all, firstResults,
                          [&](Operation *op) { return first.contains(op); });
  SmallVector<Value> secondArguments(arguments.begin(), arguments.end());
  for (Value value : secondArguments)
    halves.weightArguments.push_back(cast<BlockArgument>(value).getArgNumber());
  llvm::append_range(secondArguments, crossing);
  halves.weight =
      makePart(function, "_weight", secondArguments, weightResults, isSecond);
  SymbolTable symbols(getOperation());
  for (func::FuncOp part : {halves.input, halves.weight}) {
    part->remove();
    symbols.insert(part, Block::iterator(function));
  }
  numSplit += 1;
  numCrossing += halves.numCrossing;
  return halves;
}

void SplitBackwardPass::rewrite(func::CallOp call,
                                const llvm::BitVector &isInput,
                                const Halves &halves) {
  OpBuilder builder(call);
  auto make = [&](func::FuncOp callee, ValueRange operands, StringRef phase) {
    auto made = func::CallOp::create(builder, call.getLoc(), callee, operands);
    made->setDiscardableAttrs(call->getDiscardableAttrDictionary());
    made->setAttr("hp.phase", builder.getStringAttr(phase));
    return made;
  };
  auto input = make(halves.input, call.getOperands(), "backward_input");
  SmallVector<Value> operands;
  for (unsigned index : halves.weightArguments)
    operands.push_back(call.getOperand(index));
  llvm::append_range(operands,
                     input.getResults().take_back(halves.numCrossing));
  auto weight = make(halves.weight, operands, "backward_weight");
  unsigned nextInput = 0, nextWeight = 0;
  for (OpResult result : call.getResults())
    result.replaceAllUsesWith(isInput[result.getResultNumber()]
                                  ? input.getResult(nextInput++)
                                  : weight.getResult(nextWeight++));
  call.erase();
}

void SplitBackwardPass::runOnOperation() {
  FailureOr<func::FuncOp> main = getEntry(getOperation());
  if (failed(main))
    return signalPassFailure();
  SymbolTable symbols(getOperation());
  llvm::MapVector<func::FuncOp, llvm::BitVector> inputs;
  llvm::MapVector<func::FuncOp, SmallVector<func::CallOp>> calls;
  DenseMap<Value, bool> known;
  for (auto call : main->getBody().front().getOps<func::CallOp>()) {
    if (!isBackward(call))
      continue;
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal() || !callee.getBody().hasOneBlock()) {
      call.emitOpError("expected a function of the module, of one block, but "
                       "got @")
          << call.getCallee();
      return signalPassFailure();
    }
    llvm::BitVector &isInput = inputs[callee];
    isInput.resize(call.getNumResults());
    for (OpResult result : call.getResults())
      if (feedsBackward(result, known))
        isInput.set(result.getResultNumber());
    calls[callee].push_back(call);
  }
  for (auto &[callee, isInput] : inputs) {
    if (isInput.all() || isInput.none()) {
      for (func::CallOp call : calls[callee])
        call->setAttr("hp.phase",
                      StringAttr::get(&getContext(), isInput.none()
                                                         ? "backward_weight"
                                                         : "backward_input"));
      continue;
    }
    Halves halves = split(callee, isInput);
    for (func::CallOp call : calls[callee])
      rewrite(call, isInput, halves);
    if (SymbolTable::symbolKnownUseEmpty(callee, getOperation()))
      callee.erase();
  }
}
