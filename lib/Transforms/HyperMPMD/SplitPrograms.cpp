//===- SplitPrograms.cpp - a program of each group ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: @main of fragments and transfers, every operand where it is read. Out: a
// nested module of each group; nothing else but attributes is left.
//
// One walk over @main in its order writes all programs. Send and receive stand
// where the transfer does: the first op of @main that no group has done yet can
// always be done, even if a send waits for its receive. Tags number the
// transfers between two groups, in the order of @main.
//
// Cost: linear in the program, functions counted once for each group that calls
// them.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_SPLITPROGRAMSPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
/// The program of one group, while it is written.
struct GroupProgram {
  ModuleOp module;
  func::FuncOp main;
  OpBuilder builder;
  IRMapping mapping;
};

class Splitter {
public:
  Splitter(ModuleOp module, func::FuncOp main) : module(module), main(main) {}

  LogicalResult run();
  int64_t numMessages = 0;

private:
  LogicalResult declare(StringAttr group);
  FailureOr<Value> get(GroupProgram &program, Value value, Operation *reader);
  LogicalResult write(FragmentOp fragment);
  LogicalResult write(TransferOp transfer);
  bool isOn(StringAttr group, StringAttr name);
  LogicalResult finish();
  void copyCallees(GroupProgram &program);

  ModuleOp module;
  func::FuncOp main;
  llvm::MapVector<StringAttr, GroupProgram> programs;
  DenseMap<std::pair<StringAttr, StringAttr>, int64_t> tags;
  DenseMap<StringAttr, unsigned> argumentNumbers;
};
} // namespace

/// The group's module, with @main and its arguments.
LogicalResult Splitter::declare(StringAttr group) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto nested = ModuleOp::create(builder, main.getLoc(), group.getValue());
  nested->setAttr(HyperMPMDDialect::kGroupAttrName, group);
  for (NamedAttribute attr : module->getDiscardableAttrs())
    nested->setAttr(attr.getName(), attr.getValue());
  builder.setInsertionPointToEnd(nested.getBody());
  SmallVector<Type> inputs, results;
  SmallVector<DictionaryAttr> inputAttrs, resultAttrs;
  SmallVector<BlockArgument> arguments;
  for (BlockArgument argument : main.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!llvm::is_contained(getArgumentGroups(main, index), group))
      continue;
    NamedAttrList attrs(main.getArgAttrDict(index));
    attrs.erase(HyperMPMDDialect::kGroupsAttrName);
    arguments.push_back(argument);
    inputs.push_back(argument.getType());
    inputAttrs.push_back(attrs.getDictionary(main.getContext()));
  }
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    if (main.getResultAttr(i, HyperMPMDDialect::kGroupAttrName) != group)
      continue;
    NamedAttrList attrs(main.getResultAttrDict(i));
    attrs.erase(HyperMPMDDialect::kGroupAttrName);
    results.push_back(main.getResultTypes()[i]);
    resultAttrs.push_back(attrs.getDictionary(main.getContext()));
  }
  auto function = func::FuncOp::create(
      builder, main.getLoc(), "main", builder.getFunctionType(inputs, results));
  function.setAllArgAttrs(inputAttrs);
  function.setAllResultAttrs(resultAttrs);
  Block *block = function.addEntryBlock();
  auto [it, isNew] = programs.insert(
      {group,
       GroupProgram{nested, function, OpBuilder::atBlockEnd(block), {}}});
  if (!isNew)
    return failure();
  for (auto [old, made] : llvm::zip_equal(arguments, block->getArguments()))
    it->second.mapping.map(Value(old), Value(made));
  return success();
}

/// The value in the group's program.
FailureOr<Value> Splitter::get(GroupProgram &program, Value value,
                               Operation *reader) {
  if (Value known = program.mapping.lookupOrNull(value))
    return known;
  return reader->emitOpError("expected its operands to be on the group that "
                             "reads them; run hypermpmd-infer-transfers first");
}

LogicalResult Splitter::write(FragmentOp fragment) {
  GroupProgram &program = programs.find(fragment.getGroupAttr())->second;
  IRMapping inner;
  Block &body = fragment.getBody().front();
  for (auto [input, argument] :
       llvm::zip_equal(fragment.getInputs(), body.getArguments())) {
    FailureOr<Value> value = get(program, input, fragment);
    if (failed(value))
      return failure();
    inner.map(Value(argument), *value);
  }
  for (Operation &op : body.without_terminator())
    program.builder.clone(op, inner);
  for (auto [result, value] :
       llvm::zip_equal(fragment.getOutputs(), fragment.getYield().getValues()))
    program.mapping.map(result, inner.lookupOrDefault(value));
  return success();
}

LogicalResult Splitter::write(TransferOp transfer) {
  GroupProgram &from = programs.find(transfer.getSourceAttr())->second;
  GroupProgram &to = programs.find(transfer.getTargetAttr())->second;
  FailureOr<Value> value = get(from, transfer.getInput(), transfer);
  if (failed(value))
    return failure();
  int64_t tag = tags[{transfer.getSourceAttr(), transfer.getTargetAttr()}]++;
  SendOp::create(from.builder, transfer.getLoc(), *value,
                 transfer.getTargetAttr(), from.builder.getI64IntegerAttr(tag),
                 DenseI64ArrayAttr());
  Value received =
      RecvOp::create(to.builder, transfer.getLoc(), transfer.getType(),
                     transfer.getSourceAttr(),
                     to.builder.getI64IntegerAttr(tag), DenseI64ArrayAttr());
  to.mapping.map(transfer.getResult(), received);
  ++numMessages;
  return success();
}

/// Whether the argument of that name is.
bool Splitter::isOn(StringAttr group, StringAttr name) {
  if (argumentNumbers.empty())
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (auto own = main.getArgAttrOfType<StringAttr>(i, "hp.name"))
        argumentNumbers[own] = i;
  auto found = argumentNumbers.find(name);
  return found != argumentNumbers.end() &&
         llvm::is_contained(getArgumentGroups(main, found->second), group);
}

LogicalResult Splitter::finish() {
  Operation *terminator = main.getBody().front().getTerminator();
  DenseMap<StringAttr, SmallVector<Value>> results;
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto group = main.getResultAttrOfType<StringAttr>(
        index, HyperMPMDDialect::kGroupAttrName);
    if (!group)
      return main.emitError("expected result ")
             << index << " to be on a device group; run "
             << "hypermpmd-infer-transfers first";
    FailureOr<Value> there =
        get(programs.find(group)->second, value, terminator);
    if (failed(there))
      return failure();
    auto updated = main.getResultAttrOfType<StringAttr>(index, "hp.updates");
    if (updated && !isOn(group, updated))
      return main.emitError("expected the argument ")
             << updated << " to be on the group " << group
             << ", where its next value is; run hypermpmd-infer-transfers "
                "first";
    results[group].push_back(*there);
  }
  for (auto &[group, program] : programs)
    func::ReturnOp::create(program.builder, main.getLoc(), results[group]);
  return success();
}

/// The functions that the program calls, and what these call.
void Splitter::copyCallees(GroupProgram &program) {
  SymbolTable symbols(module);
  llvm::SetVector<Operation *> needed;
  auto collect = [&](Operation *root) {
    root->walk([&](func::CallOp call) {
      if (Operation *callee = symbols.lookup(call.getCallee()))
        needed.insert(callee);
    });
  };
  collect(program.main);
  for (unsigned next = 0; next < needed.size(); ++next)
    collect(needed[next]);
  OpBuilder builder = OpBuilder::atBlockEnd(program.module.getBody());
  for (Operation *function : needed)
    builder.clone(*function);
}

LogicalResult Splitter::run() {
  TopologyAttr topology = getTopology(module);
  for (GroupAttr group : topology.getGroups()) {
    auto name = StringAttr::get(module.getContext(), group.getName());
    if (Operation *other = SymbolTable::lookupSymbolIn(module, name))
      return other->emitError("expected the name of the device group ")
             << name << " to be free but this has it; rename the group";
    if (failed(declare(name)))
      return failure();
  }
  for (Operation &op : main.getBody().front().without_terminator()) {
    auto fragment = dyn_cast<FragmentOp>(op);
    if (failed(fragment ? write(fragment) : write(cast<TransferOp>(op))))
      return failure();
  }
  if (failed(finish()))
    return failure();
  for (auto &[group, program] : programs)
    copyCallees(program);
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (isa<func::FuncOp>(op))
      op.erase();
  return success();
}

namespace {
struct SplitProgramsPass
    : hypermpmd::impl::SplitProgramsPassBase<SplitProgramsPass> {
  using SplitProgramsPassBase::SplitProgramsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> main = getFragmentedEntry(module);
    if (failed(main))
      return signalPassFailure();
    if (!getTopology(module)) {
      module.emitError("expected the module to have a `")
          << HyperMPMDDialect::kTopologyAttrName
          << "`; run hypermpmd-form-fragments first";
      return signalPassFailure();
    }
    Splitter splitter(module, *main);
    if (failed(splitter.run()))
      return signalPassFailure();
    numMessages = splitter.numMessages;
  }
};
} // namespace
