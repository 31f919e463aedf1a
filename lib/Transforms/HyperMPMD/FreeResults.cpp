//===- FreeResults.cpp - results that cost nothing to have ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The function of a model's first ops returns embeddings, and beside them what
// all layers read: a causal mask, tables of positions. These are made of
// constants; moved to another group, a mask of s x s is more than the
// activation that it comes with. So they are made on each group.
//
//   1. Free are constants, inputs, buffers that stay as they are, and what ops
//      outside of calls make of these. In the order of first calls: a result
//      is free if the ops that it needs in the function take few iterations
//      for each of its elements, and the arguments that these read are free in
//      all calls. (So a product is never free, and a mask of any size is.)
//   2. Wanted are free results that a call of another group reads, and free
//      results that wanted ones are made of.
//   3. The wanted results of a function become a function of their own, whose
//      calls carry no path; the rest of it stays as it was called.
//
// Cost: the ops of each function once for each of its results, and the ops
// between calls once for each operand that is free.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/FreeResults.h"
#include "lib/Transforms/HyperMPMD/FunctionParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
class FreeResults {
public:
  FreeResults(func::FuncOp main, const StagePlan &plan);

  int64_t run();

private:
  bool isFree(Value value);
  StringAttr groupOf(Operation *op) const;
  llvm::BitVector findFree(func::FuncOp function, ArrayRef<func::CallOp> calls);
  bool isReadElsewhere(func::CallOp call, unsigned result) const;
  void want(func::FuncOp function, unsigned result);
  void wantMakers(Value value);
  void cut(func::FuncOp function, ArrayRef<func::CallOp> calls);

  func::FuncOp main;
  const StagePlan &plan;
  SymbolTable symbols;
  CallsByFunction calls, rest;
  llvm::DenseSet<Value> free;
  DenseMap<Operation *, llvm::BitVector> wanted; ///< by function
};
} // namespace

/// Arguments that every group may have: inputs, and buffers that stay.
FreeResults::FreeResults(func::FuncOp main, const StagePlan &plan)
    : main(main), plan(plan), symbols(main->getParentOfType<ModuleOp>()) {
  llvm::StringSet<> updated;
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (auto name = main.getResultAttrOfType<StringAttr>(i, "hp.updates"))
      updated.insert(name.getValue());
  for (BlockArgument argument : main.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto role = main.getArgAttrOfType<StringAttr>(index, "hp.role");
    auto name = main.getArgAttrOfType<StringAttr>(index, "hp.name");
    if (role && name && !updated.contains(name.getValue()) &&
        (role.getValue() == "input" || role.getValue() == "buffer"))
      free.insert(argument);
  }
  for (auto call : main.getBody().front().getOps<func::CallOp>()) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (callee && callee.isPrivate() && !callee.isExternal() &&
        callee.getBody().hasOneBlock())
      calls[callee].push_back(call);
  }
  // What others call stays as it is.
  SymbolTableCollection tables;
  SymbolUserMap users(tables, main->getParentOfType<ModuleOp>());
  calls.remove_if([&](auto &entry) {
    return users.getUsers(entry.first).size() != entry.second.size();
  });
}

StringAttr FreeResults::groupOf(Operation *op) const {
  auto path = op->getAttrOfType<StringAttr>("hp.path");
  auto stage =
      path ? plan.stageOfPath.find(path.getValue()) : plan.stageOfPath.end();
  return stage == plan.stageOfPath.end() ? StringAttr()
                                         : plan.groups[stage->second];
}

bool FreeResults::isFree(Value value) {
  if (free.contains(value))
    return true;
  Operation *maker = value.getDefiningOp();
  if (!maker || isa<func::CallOp>(maker) || !isMemoryEffectFree(maker) ||
      !llvm::all_of(readValues(maker), [&](Value read) {
        return maker->isProperAncestor(read.getParentBlock()->getParentOp()) ||
               read.getParentBlock()->getParentOp() == maker || isFree(read);
      }))
    return false;
  free.insert(value);
  return true;
}

/// What is made with so many iterations for each element is sooner made than
/// moved.
static constexpr int64_t kMostIterations = 16;

/// The iterations that the ops take; none if that cannot be said.
static std::optional<int64_t>
countIterations(const llvm::SmallPtrSetImpl<Operation *> &ops) {
  int64_t total = 0;
  for (Operation *op : ops) {
    if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
      int64_t iterations = 1;
      for (int64_t range : structured.getStaticLoopRanges())
        iterations *= range;
      total += iterations;
      continue;
    }
    if (!isMemoryEffectFree(op) || op->getNumRegions() != 0 ||
        isa<func::CallOp>(op))
      return std::nullopt;
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        total += tensor.getNumElements();
  }
  return total;
}

/// The results that are free in all calls.
llvm::BitVector FreeResults::findFree(func::FuncOp function,
                                      ArrayRef<func::CallOp> callers) {
  Block &body = function.getBody().front();
  llvm::BitVector found(function.getNumResults());
  for (auto [index, value] :
       llvm::enumerate(body.getTerminator()->getOperands())) {
    auto slice = sliceOf(body, value);
    std::optional<int64_t> iterations = countIterations(slice);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    bool isGiven = iterations && type &&
                   *iterations <= kMostIterations * type.getNumElements();
    auto look = [&](Value read) {
      auto argument = dyn_cast<BlockArgument>(read);
      if (isGiven && argument && argument.getOwner() == &body)
        isGiven = llvm::all_of(callers, [&](func::CallOp call) {
          return isFree(call.getOperand(argument.getArgNumber()));
        });
    };
    look(value);
    for (Operation *op : slice)
      llvm::for_each(readValues(op), look);
    found[index] = isGiven;
  }
  return found;
}

/// By a group that the call is not on; a call without a place is on none.
bool FreeResults::isReadElsewhere(func::CallOp call, unsigned result) const {
  StringAttr own = groupOf(call);
  return llvm::any_of(call.getResult(result).getUsers(), [&](Operation *user) {
    StringAttr group = groupOf(user);
    return group && group != own;
  });
}

/// The free results that a free value is made of.
void FreeResults::wantMakers(Value value) {
  SmallVector<Value> open = {value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    Operation *maker = next.getDefiningOp();
    if (!maker || maker->getBlock() != &main.getBody().front())
      continue;
    if (auto call = dyn_cast<func::CallOp>(maker)) {
      if (free.contains(next))
        want(symbols.lookup<func::FuncOp>(call.getCallee()),
             cast<OpResult>(next).getResultNumber());
    } else if (seen.insert(maker).second) {
      llvm::append_range(open, readValues(maker));
    }
  }
}

void FreeResults::want(func::FuncOp function, unsigned result) {
  llvm::BitVector &those = wanted[function];
  those.resize(function.getNumResults());
  if (those[result])
    return;
  those.set(result);
  Block &body = function.getBody().front();
  Value value = body.getTerminator()->getOperand(result);
  SmallVector<Value> reads = {value};
  for (Operation *op : sliceOf(body, value))
    llvm::append_range(reads, readValues(op));
  for (Value read : reads)
    if (auto argument = dyn_cast<BlockArgument>(read))
      if (argument.getOwner() == &body)
        for (func::CallOp call : calls[function])
          wantMakers(call.getOperand(argument.getArgNumber()));
}

/// Calls of a part in the place of results of the old call.
static func::CallOp callPart(func::CallOp call, func::FuncOp part,
                             ValueRange operands, ArrayRef<unsigned> results) {
  OpBuilder builder(call);
  auto made = func::CallOp::create(builder, call.getLoc(), part, operands);
  for (auto [position, result] : llvm::enumerate(results))
    call.getResult(result).replaceAllUsesWith(made.getResult(position));
  return made;
}

void FreeResults::cut(func::FuncOp function, ArrayRef<func::CallOp> callers) {
  const llvm::BitVector &those = wanted.find(function)->second;
  Block &body = function.getBody().front();
  SmallVector<Value> made, left;
  SmallVector<unsigned> madeResults, leftResults;
  for (auto [index, value] :
       llvm::enumerate(body.getTerminator()->getOperands())) {
    (those[index] ? made : left).push_back(value);
    (those[index] ? madeResults : leftResults).push_back(index);
  }
  auto slice = sliceOf(body, made), others = sliceOf(body, left);
  llvm::SetVector<Value> read;
  auto note = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == &body)
      read.insert(value);
  };
  llvm::for_each(made, note);
  for (Operation &op : body)
    if (slice.contains(&op))
      llvm::for_each(readValues(&op), note);
  SmallVector<Value> all(body.getArguments());
  auto enter = [&](func::FuncOp part) {
    part->remove();
    symbols.insert(part, Block::iterator(function));
  };
  func::FuncOp freePart =
      makePart(function, "_free", read.getArrayRef(), made,
               [&](Operation *op) { return slice.contains(op); });
  enter(freePart);
  func::FuncOp restPart;
  if (!left.empty()) {
    restPart = makePart(function, "_rest", all, left,
                        [&](Operation *op) { return others.contains(op); });
    enter(restPart);
    restPart->setDiscardableAttrs(function->getDiscardableAttrDictionary());
  }
  for (func::CallOp call : callers) {
    SmallVector<Value> operands;
    for (Value value : read)
      operands.push_back(
          call.getOperand(cast<BlockArgument>(value).getArgNumber()));
    callPart(call, freePart, operands, madeResults);
    if (restPart) {
      func::CallOp kept =
          callPart(call, restPart, call.getOperands(), leftResults);
      kept->setDiscardableAttrs(call->getDiscardableAttrDictionary());
      rest[restPart].push_back(kept);
    }
    call.erase();
  }
  symbols.erase(function);
}

int64_t FreeResults::run() {
  for (auto &[function, callers] : calls) {
    llvm::BitVector found = findFree(function, callers);
    for (func::CallOp call : callers)
      for (unsigned result : found.set_bits())
        free.insert(call.getResult(result));
  }
  for (auto &[function, callers] : calls)
    for (func::CallOp call : callers)
      for (OpResult result : call.getResults())
        if (free.contains(result) &&
            isReadElsewhere(call, result.getResultNumber()))
          want(function, result.getResultNumber());
  int64_t count = 0;
  for (auto &[function, callers] : calls)
    if (auto found = wanted.find(function); found != wanted.end()) {
      count += found->second.count();
      cut(function, callers);
    }
  dropUnreadArguments(main, rest);
  return count;
}

int64_t hypermpmd::freeResults(func::FuncOp main, const StagePlan &plan) {
  return plan.topology.getGroups().size() < 2 ? 0
                                              : FreeResults(main, plan).run();
}
