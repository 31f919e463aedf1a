//===- TaskWalk.cpp - ops in the order in which a device does them --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Calls are expanded, and loops that call, communicate or copy and run a known
// number of times: of a loop over microbatches every iteration is seen, with
// what it moves and what lives meanwhile. Other loops, and branches, are one
// task.
//===----------------------------------------------------------------------===//
#include "lib/Simulator/TaskBuilder.h"

#include "dialects/Offload/Offload.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::hyperparallel;

/// Longer loops are one task: a step has to stay of a size that can be seen.
static constexpr uint64_t kMostIterations = 1024;

/// The function that is called, if it has a body that is not being expanded
/// already; null for other ops.
FunctionOpInterface TaskBuilder::calleeOf(Operation *op) {
  auto call = dyn_cast<CallOpInterface>(op);
  if (!call)
    return {};
  auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  if (!symbol)
    return {};
  auto callee = dyn_cast_or_null<FunctionOpInterface>(
      symbols.lookupNearestSymbolFrom(op, symbol));
  if (!callee || callee.isExternal() ||
      !callee.getFunctionBody().hasOneBlock() ||
      llvm::is_contained(callStack, callee.getOperation()))
    return {};
  return callee;
}

/// The path of a call, or of what was lifted from one, behind that of its
/// caller.
static std::string pathOf(Operation *op, const std::string &path) {
  auto name = op->getAttrOfType<StringAttr>("hp.path");
  if (!name)
    return path;
  return path.empty() ? name.str() : path + "." + name.str();
}

LogicalResult TaskBuilder::expandCall(Operation *op, FunctionOpInterface callee,
                                      Environment &values,
                                      const std::string &path) {
  Environment inner;
  for (auto [argument, operand] : llvm::zip_equal(
           callee.getArguments(), cast<CallOpInterface>(op).getArgOperands()))
    if (auto info = values.find(operand); info != values.end())
      inner[argument] = info->second;
  std::string innerPath = pathOf(op, path);
  callStack.push_back(callee);
  size_t before = underWay.size();
  FailureOr<SmallVector<ValueInfo>> returned =
      walk(callee.getFunctionBody().front(), inner, innerPath);
  callStack.pop_back();
  // A function leaves nothing under way.
  links.pending.append(underWay.begin() + before, underWay.end());
  underWay.truncate(before);
  if (failed(returned))
    return failure();
  for (auto [value, info] : llvm::zip_equal(op->getResults(), *returned))
    values[value] = info;
  return success();
}

/// How often the loop runs, if its iterations are to be seen one by one: it
/// calls, communicates or copies, and does so a known number of times.
static std::optional<int64_t> tripsToExpand(LoopLikeOpInterface loop) {
  SmallVector<Region *> regions = loop.getLoopRegions();
  if (regions.size() != 1 || !regions.front()->hasOneBlock() ||
      !loop.getLoopResults())
    return std::nullopt;
  std::optional<llvm::APInt> trips = loop.getStaticTripCount();
  if (!trips || trips->getZExtValue() > kMostIterations)
    return std::nullopt;
  bool moves = loop.walk([](Operation *op) {
                     return isa<CallOpInterface, MovementOpInterface>(op) ||
                                    describeCollective(op)
                                ? WalkResult::interrupt()
                                : WalkResult::advance();
                   })
                   .wasInterrupted();
  return moves ? std::optional<int64_t>(trips->getZExtValue()) : std::nullopt;
}

/// Every iteration is tasks of its own. What it hands on is the next one's
/// argument, in place; a value that is needed after the loop, too, is copied to
/// a place of the loop's.
LogicalResult TaskBuilder::expandLoop(LoopLikeOpInterface loop, int64_t trips,
                                      Environment &values,
                                      const std::string &path) {
  SmallVector<ValueInfo> carried;
  for (OpOperand &init : loop.getInitsMutable()) {
    ValueInfo info = values.lookup(init.get());
    auto type = dyn_cast<RankedTensorType>(init.get().getType());
    if (type && !init.get().hasOneUse())
      info.buffer = newBuffer(byteSize(type), memory);
    carried.push_back(info);
  }
  Block &body = loop.getLoopRegions().front()->front();
  size_t before = underWay.size();
  for (int64_t trip = 0; trip < trips; ++trip) {
    for (auto [argument, info] :
         llvm::zip_equal(loop.getRegionIterArgs(), carried))
      values[argument] = info;
    FailureOr<SmallVector<ValueInfo>> yielded = walk(body, values, path);
    if (failed(yielded))
      return failure();
    carried = std::move(*yielded);
    // An iteration leaves nothing under way.
    links.pending.append(underWay.begin() + before, underWay.end());
    underWay.truncate(before);
  }
  for (auto [value, info] : llvm::zip_equal(*loop.getLoopResults(), carried))
    values[value] = info;
  return success();
}

LogicalResult TaskBuilder::visit(Operation *op, Environment &values,
                                 const std::string &path) {
  if (auto movement = dyn_cast<MovementOpInterface>(op))
    return addMovement(movement, values, path);
  // Views of what is in a tier may be between what is fetched.
  bool isOnDevice = llvm::any_of(op->getOperandTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && !offload::getTier(tensor);
  });
  if (!isa<offload::WaitOp, offload::DetachOp>(op) &&
      (isOnDevice || op->getNumOperands() == 0))
    submitted.clear();
  if (FunctionOpInterface callee = calleeOf(op))
    return expandCall(op, callee, values, path);
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    if (std::optional<int64_t> trips = tripsToExpand(loop))
      return expandLoop(loop, *trips, values, path);
  TaskCost cost = model.getCost(op);
  if (cost.launches > 0)
    return addTask(op, cost, values, pathOf(op, path));
  passThrough(op, values);
  return success();
}

/// Where the operands of the terminator are.
FailureOr<SmallVector<TaskBuilder::ValueInfo>>
TaskBuilder::walk(Block &block, Environment &values, const std::string &path) {
  for (Operation &op : block.without_terminator())
    if (failed(visit(&op, values, path)))
      return failure();
  SmallVector<ValueInfo> returned;
  for (Value value : block.getTerminator()->getOperands())
    returned.push_back(values.lookup(value));
  return returned;
}
