//===- InferTransfers.cpp - what crosses groups is moved ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: @main of fragments (and transfers of a person). Out: every operand of a
// fragment is on its group, by a transfer or because the argument is handed to
// the group.
//
//   1. An argument whose next value a result is (hp.updates) lives on the group
//      that reads it, or, if none or several do, on the one that makes this
//      result; one that takes over what another argument held (a value of some
//      steps ago) lives with that one. Any other lives wherever it is read. A
//      next value that is made elsewhere (the weights of an actor, by a
//      learner) is brought there.
//   2. For each value, and each group that reads it and does not have it: one
//      transfer, behind what makes the value (for an argument, before the first
//      fragment), which all reads on that group share.
//   3. There and back, and over another group: folded by the ops themselves.
//
// Cost: linear in the operands.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_INFERTRANSFERSPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
struct InferTransfersPass
    : hypermpmd::impl::InferTransfersPassBase<InferTransfersPass> {
  using InferTransfersPassBase::InferTransfersPassBase;

  LogicalResult moveValues(func::FuncOp main);
  LogicalResult placeArguments(func::FuncOp main);
  LogicalResult placeResults(func::FuncOp main);
  FailureOr<Value> onGroup(Value value, StringAttr group, Operation *reader);
  LogicalResult simplify(func::FuncOp main);

  void runOnOperation() override;

  /// Where an argument lives; groups that read an argument without a home get
  /// it handed.
  DenseMap<Value, StringAttr> homes;
  /// By result: where the argument lives that it updates.
  DenseMap<unsigned, StringAttr> destinations;
  DenseMap<Value, llvm::SetVector<Attribute>> readers;
  DenseMap<std::pair<Value, StringAttr>, Value> moved;
};
} // namespace

/// The group that reads a value, if it is one alone.
static StringAttr getOnlyReader(Value value) {
  StringAttr only;
  for (Operation *user : value.getUsers()) {
    StringAttr group;
    if (auto transfer = dyn_cast<TransferOp>(user))
      group = transfer.getSourceAttr();
    else if (auto fragment = dyn_cast<FragmentOp>(user))
      group = fragment.getGroupAttr();
    if (!group)
      continue;
    if (only && only != group)
      return {};
    only = group;
  }
  return only;
}

LogicalResult InferTransfersPass::placeArguments(func::FuncOp main) {
  llvm::StringMap<unsigned> names;
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (auto name = main.getArgAttrOfType<StringAttr>(i, "hp.name"))
      names[name.getValue()] = i;
  Operation *terminator = main.getBody().front().getTerminator();
  DenseMap<Value, Value> next;
  DenseMap<Value, unsigned> results;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    auto name = main.getResultAttrOfType<StringAttr>(i, "hp.updates");
    if (!name)
      continue;
    auto argument = names.find(name.getValue());
    if (argument == names.end())
      return main.emitError("result ")
             << i << " updates " << name << ", which is no argument";
    Value updated = main.getArgument(argument->second);
    next[updated] = terminator->getOperand(i);
    results[updated] = i;
    StringAttr home = getOnlyReader(updated);
    if (!home)
      home = getMakingGroup(terminator->getOperand(i));
    if (home)
      destinations[i] = homes[updated] = home;
  }
  // What is handed on from argument to argument, and read by nobody.
  auto first = StringAttr::get(&getContext(),
                               getTopology(main).getGroups().front().getName());
  for (BlockArgument argument : main.getArguments()) {
    SmallVector<Value> chain;
    Value at = argument;
    while (next.contains(at) && !homes.contains(at) &&
           chain.size() <= next.size()) {
      chain.push_back(at);
      at = next.lookup(at);
    }
    StringAttr home = homes.lookup(at);
    for (Value link : chain)
      destinations[results.lookup(link)] = homes[link] = home ? home : first;
  }
  return success();
}

/// The value, on the group of a reader.
FailureOr<Value> InferTransfersPass::onGroup(Value value, StringAttr group,
                                             Operation *reader) {
  StringAttr made = getMakingGroup(value);
  if (!made)
    made = homes.lookup(value);
  if (!made) {
    readers[value].insert(group);
    return value;
  }
  if (made == group)
    return value;
  auto [known, isNew] = moved.try_emplace({value, group});
  if (!isNew) {
    ++numShared;
    return known->second;
  }
  if (!isa<RankedTensorType>(value.getType()))
    return reader->emitOpError("expected a tensor to cross from group ")
           << made << " to group " << group << " but got " << value.getType();
  OpBuilder builder(reader->getContext());
  if (Operation *maker = value.getDefiningOp())
    builder.setInsertionPointAfter(maker);
  else
    builder.setInsertionPointToStart(value.getParentBlock());
  ++numTransfers;
  return known->second = TransferOp::create(builder, value.getLoc(),
                                            value.getType(), value, made, group)
                             .getResult();
}

LogicalResult InferTransfersPass::moveValues(func::FuncOp main) {
  SmallVector<Operation *> ops;
  for (Operation &op : main.getBody().front().without_terminator()) {
    ops.push_back(&op);
    if (auto transfer = dyn_cast<TransferOp>(op))
      moved[{transfer.getInput(), transfer.getTargetAttr()}] =
          transfer.getResult();
  }
  for (Operation *op : ops) {
    auto transfer = dyn_cast<TransferOp>(op);
    StringAttr group = transfer ? transfer.getSourceAttr()
                                : cast<FragmentOp>(op).getGroupAttr();
    for (OpOperand &operand : op->getOpOperands()) {
      FailureOr<Value> there = onGroup(operand.get(), group, op);
      if (failed(there))
        return failure();
      operand.set(*there);
    }
  }
  return success();
}

LogicalResult InferTransfersPass::placeResults(func::FuncOp main) {
  TopologyAttr topology = getTopology(main);
  Operation *terminator = main.getBody().front().getTerminator();
  auto first =
      StringAttr::get(&getContext(), topology.getGroups().front().getName());
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    if (StringAttr home = destinations.lookup(index)) {
      FailureOr<Value> there = onGroup(operand.get(), home, terminator);
      if (failed(there))
        return failure();
      operand.set(*there);
      main.setResultAttr(index, HyperMPMDDialect::kGroupAttrName, home);
      continue;
    }
    Value value = operand.get();
    StringAttr group = getMakingGroup(value);
    if (!group)
      group = homes.lookup(value);
    if (!group) { // an argument as it came
      auto &there = readers[value];
      if (there.empty())
        there.insert(first);
      group = cast<StringAttr>(there.front());
    }
    main.setResultAttr(index, HyperMPMDDialect::kGroupAttrName, group);
  }
  for (BlockArgument argument : main.getArguments()) {
    SmallVector<Attribute> groups;
    if (StringAttr home = homes.lookup(argument))
      groups.push_back(home);
    else
      groups = llvm::to_vector(readers[argument]);
    main.setArgAttr(argument.getArgNumber(), HyperMPMDDialect::kGroupsAttrName,
                    ArrayAttr::get(&getContext(), groups));
  }
  return success();
}

LogicalResult InferTransfersPass::simplify(func::FuncOp main) {
  RewritePatternSet patterns(&getContext());
  FragmentOp::getCanonicalizationPatterns(patterns, &getContext());
  TransferOp::getCanonicalizationPatterns(patterns, &getContext());
  return applyPatternsGreedily(main, std::move(patterns));
}

void InferTransfersPass::runOnOperation() {
  FailureOr<func::FuncOp> main = getFragmentedEntry(getOperation());
  // Fragments that hand on what they got are seen through first.
  if (failed(main) || failed(simplify(*main)) ||
      failed(placeArguments(*main)) || failed(moveValues(*main)) ||
      failed(placeResults(*main)) || failed(simplify(*main)))
    return signalPassFailure();
}
