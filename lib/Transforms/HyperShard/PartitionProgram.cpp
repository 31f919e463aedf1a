//===- PartitionProgram.cpp - the program that every device runs ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: every tensor has a sharding, operands agree with the rules of their ops,
// and what moves between layouts are collectives in global form. Out: every
// function works on the parts of one device; no sharding is left, the mesh
// stays. main's arguments and results say in `hp.sharding` and `hp.global_type`
// how a runner cuts inputs and puts outputs together.
//
// Each function is built anew, op by op in program order, with a map from
// global to local values:
//
//  1. collectives           -> their local form (LocalizeCollectives.cpp)
//  2. constraint, barrier   -> their operand
//  3. manual regions        -> inlined
//  4. branches, loops, calls, returns -> the same op on local types
//  5. ops that touch nothing split    -> as they are
//  6. ShardableOpInterface, elementwise ops -> their partition()
//  7. anything else that touches a split tensor is refused
//
// Cost: linear in the size of the program.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/LocalProgram.h"
#include "lib/Transforms/HyperShard/Passes.h"

#include "mlir/Interfaces/CallInterfaces.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_PARTITIONPROGRAMPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

static constexpr StringLiteral kSharding = HyperShardDialect::kShardingAttrName;

namespace {
/// Builds the local program of one function.
class FunctionPartitioner {
public:
  FunctionPartitioner(LocalLayouts &layouts, OpBuilder &builder)
      : layouts(layouts), builder(builder), program(layouts, builder) {}

  LogicalResult run(FunctionOpInterface function);

private:
  LogicalResult buildRegion(Region &global, Region &local);
  LogicalResult buildOp(Operation *op);
  LogicalResult buildStructured(Operation *op);
  LogicalResult inlineManual(ManualOp op);
  bool touchesSplitTensors(Operation *op);
  bool isWhole(Value value) {
    return !isa<RankedTensorType>(value.getType()) ||
           layouts.of(value).isReplicated();
  }

  LocalLayouts &layouts;
  OpBuilder &builder;
  LocalProgram program;
};
} // namespace

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Does the op read or make a tensor that is split, its regions included?
bool FunctionPartitioner::touchesSplitTensors(Operation *op) {
  WalkResult result = op->walk([&](Operation *inner) {
    bool allWhole =
        llvm::all_of(inner->getOperands(),
                     [&](Value v) { return isWhole(v); }) &&
        llvm::all_of(inner->getResults(), [&](Value v) { return isWhole(v); });
    return allWhole ? WalkResult::advance() : WalkResult::interrupt();
  });
  return result.wasInterrupted();
}

/// The same op on local types, its regions built in turn.
LogicalResult FunctionPartitioner::buildStructured(Operation *op) {
  Operation *local = op->cloneWithoutRegions(program.mapping);
  builder.insert(local);
  for (auto [global, result] :
       llvm::zip_equal(op->getResults(), local->getResults()))
    result.setType(layouts.localTypeOf(global));
  for (auto [global, region] :
       llvm::zip_equal(op->getRegions(), local->getRegions())) {
    OpBuilder::InsertionGuard guard(builder);
    if (failed(buildRegion(global, region)))
      return failure();
  }
  return success();
}

/// The body is local already.
LogicalResult FunctionPartitioner::inlineManual(ManualOp op) {
  Block &body = op.getBody().front();
  for (auto [index, operand] : llvm::enumerate(op.getInputs())) {
    auto wanted = cast<ShardingAttr>(op.getInShardings()[index]);
    if (layouts.of(wanted) != layouts.of(operand))
      return op.emitOpError()
             << "expected operand " << index << " to be split as "
             << layouts.print(layouts.of(wanted)) << " but got "
             << layouts.print(layouts.of(operand));
    program.mapping.map(body.getArgument(index), program.local(operand));
  }
  for (Operation &inner : body.without_terminator())
    builder.clone(inner, program.mapping);
  for (auto [index, result] : llvm::enumerate(op.getOutputs())) {
    auto made = cast<ShardingAttr>(op.getOutShardings()[index]);
    if (layouts.of(made) != layouts.of(result))
      return op.emitOpError()
             << "expected result " << index << " to be split as "
             << layouts.print(layouts.of(made)) << " but got "
             << layouts.print(layouts.of(result));
    program.mapping.map(result,
                        program.local(body.getTerminator()->getOperand(index)));
  }
  return success();
}

LogicalResult FunctionPartitioner::buildOp(Operation *op) {
  if (isGlobalCollective(op) && op->hasAttr(kSharding))
    return localizeCollective(op, program);
  if (isa<ReshardOp>(op))
    return op->emitOpError("expected reshards to be lowered; run "
                           "hypershard-lower-reshards first");
  if (isa<ConstraintOp, BarrierOp>(op)) {
    Value input = op->getOperand(0), result = op->getResult(0);
    TensorLayout wanted = layouts.of(result);
    if (auto constraint = dyn_cast<ConstraintOp>(op))
      wanted = layouts.of(constraint.getSharding());
    if (layouts.of(input) != wanted || layouts.of(result) != wanted)
      return op->emitOpError()
             << "expected its operand to be split as " << layouts.print(wanted)
             << " but got " << layouts.print(layouts.of(input))
             << "; run hypershard-insert-reshards first";
    program.mapping.map(result, program.local(input));
    return success();
  }
  if (auto manual = dyn_cast<ManualOp>(op))
    return inlineManual(manual);
  if (isa<RegionBranchOpInterface, CallOpInterface>(op) ||
      op->hasTrait<OpTrait::ReturnLike>() ||
      isa<RegionBranchTerminatorOpInterface>(op))
    return buildStructured(op);
  if (!touchesSplitTensors(op)) {
    builder.clone(*op, program.mapping);
    return success();
  }
  if (isa<ShardableOpInterface>(op) ||
      OpTrait::hasElementwiseMappableTraits(op))
    return partitionOp(op, program);
  for (Value value : op->getOperands())
    if (!isWhole(value))
      return op->emitOpError()
             << "expected whole tensors, because it has no sharding rule, but "
                "got "
             << layouts.print(layouts.of(value))
             << "; run hypershard-insert-reshards first";
  return op->emitOpError("expected whole tensors, because it has no sharding "
                         "rule; run hypershard-insert-reshards first");
}

LogicalResult FunctionPartitioner::buildRegion(Region &global, Region &local) {
  for (Block &block : global) {
    Block *copy = new Block();
    local.push_back(copy);
    for (BlockArgument argument : block.getArguments())
      program.mapping.map(
          argument,
          copy->addArgument(layouts.localTypeOf(argument), argument.getLoc()));
    program.mapping.map(&block, copy);
    if (!program.entry)
      program.entry = copy;
  }
  if (!global.hasOneBlock())
    for (Block &block : global)
      for (Operation &op : block)
        if (touchesSplitTensors(&op))
          return op.emitError("expected structured control flow (scf) around "
                              "split tensors but got several blocks");
  for (Block &block : global) {
    builder.setInsertionPointToEnd(program.mapping.lookup(&block));
    for (Operation &op : block)
      if (failed(buildOp(&op)))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Replaces the sharding of an argument or result by what a runner needs.
static DictionaryAttr describe(DictionaryAttr attrs, Type globalType,
                               ShardingAttr sharding, bool isPublic) {
  NamedAttrList list(attrs);
  list.erase(kSharding);
  if (isPublic && isa<RankedTensorType>(globalType)) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << sharding;
    list.set("hp.sharding", StringAttr::get(globalType.getContext(), text));
    list.set("hp.global_type", TypeAttr::get(globalType));
  }
  return list.getDictionary(globalType.getContext());
}

/// The layouts of a function's results are those of what it returns.
static LogicalResult readResults(FunctionOpInterface function,
                                 LocalLayouts &layouts,
                                 SmallVectorImpl<TensorLayout> &results) {
  results.resize(function.getNumResults());
  for (Block &block : function.getFunctionBody()) {
    Operation *terminator = block.getTerminator();
    if (!terminator->hasTrait<OpTrait::ReturnLike>())
      continue;
    for (auto [index, operand] : llvm::enumerate(terminator->getOperands())) {
      if (!isa<RankedTensorType>(operand.getType()))
        continue;
      results[index] = layouts.of(operand);
      auto wanted =
          function.getResultAttrOfType<ShardingAttr>(index, kSharding);
      if (wanted && layouts.of(wanted) != results[index])
        return terminator->emitOpError()
               << "expected operand " << index << " to be split as the result "
               << "of the function, " << layouts.print(layouts.of(wanted))
               << ", but got " << layouts.print(results[index]);
    }
  }
  return success();
}

LogicalResult FunctionPartitioner::run(FunctionOpInterface function) {
  SmallVector<TensorLayout, 2> results;
  if (failed(readResults(function, layouts, results)))
    return failure();
  bool isPublic = function.isPublic();
  SmallVector<Type> inputTypes, resultTypes;
  SmallVector<DictionaryAttr> inputAttrs, resultAttrs;
  for (BlockArgument argument : function.getArguments()) {
    inputTypes.push_back(layouts.localTypeOf(argument));
    ShardingAttr sharding;
    if (isa<RankedTensorType>(argument.getType()))
      sharding = layouts.print(layouts.of(argument));
    inputAttrs.push_back(
        describe(function.getArgAttrDict(argument.getArgNumber()),
                 argument.getType(), sharding, isPublic));
  }
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    resultTypes.push_back(tensor ? Type(results[index].localType(tensor))
                                 : type);
    ShardingAttr sharding;
    if (tensor)
      sharding = layouts.print(results[index]);
    resultAttrs.push_back(
        describe(function.getResultAttrDict(index), type, sharding, isPublic));
  }
  auto local = cast<FunctionOpInterface>(function->cloneWithoutRegions());
  builder.setInsertionPoint(function);
  builder.insert(local);
  local.setType(local.cloneTypeWith(inputTypes, resultTypes));
  local.setAllArgAttrs(inputAttrs);
  local.setAllResultAttrs(resultAttrs);
  if (failed(buildRegion(function.getFunctionBody(), local.getFunctionBody())))
    return failure();
  return success();
}

/// What stands behind a declaration knows nothing of parts.
static LogicalResult checkDeclaration(FunctionOpInterface function,
                                      LocalLayouts &layouts) {
  auto check = [&](Attribute attr, StringRef what, unsigned index) {
    auto sharding = dyn_cast_or_null<ShardingAttr>(attr);
    if (!sharding || layouts.of(sharding).isReplicated())
      return success();
    return LogicalResult(function.emitError()
                         << "expected " << what << ' ' << index
                         << " of a function without a body to be whole but got "
                         << layouts.print(layouts.of(sharding)));
  };
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    if (failed(check(function.getArgAttr(index, kSharding), "argument", index)))
      return failure();
    function.removeArgAttr(index,
                           StringAttr::get(function.getContext(), kSharding));
  }
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    if (failed(
            check(function.getResultAttr(index, kSharding), "result", index)))
      return failure();
    function.removeResultAttr(
        index, StringAttr::get(function.getContext(), kSharding));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct PartitionProgramPass
    : hypershard::impl::PartitionProgramPassBase<PartitionProgramPass> {
  using PartitionProgramPassBase::PartitionProgramPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<LocalLayouts> layouts = LocalLayouts::read(module);
    if (failed(layouts))
      return signalPassFailure();
    OpBuilder builder(module.getContext());
    SmallVector<FunctionOpInterface> functions;
    for (auto function : module.getOps<FunctionOpInterface>()) {
      if (!function.isExternal())
        functions.push_back(function);
      else if (failed(checkDeclaration(function, *layouts)))
        return signalPassFailure();
    }
    for (FunctionOpInterface function : functions)
      if (failed(FunctionPartitioner(*layouts, builder).run(function)))
        return signalPassFailure();
    for (FunctionOpInterface function : functions)
      function.erase();
    module.walk([](Operation *op) { op->removeDiscardableAttr(kSharding); });
  }
};
} // namespace
