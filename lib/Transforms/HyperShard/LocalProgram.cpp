//===- LocalProgram.cpp - layouts and local values of a program -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/LocalProgram.h"

#include "lib/ExternalModels/Partitions.h"
#include "lib/ExternalModels/TensorEdits.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

FailureOr<LocalLayouts> LocalLayouts::read(ModuleOp module) {
  MeshAttr mesh = MeshAttr::get(module.getContext(), {}, {});
  StringRef name = "mesh";
  // Without a mesh nothing is split, and every device runs all of it.
  if (!module.getOps<MeshOp>().empty()) {
    FailureOr<MeshOp> meshOp = getOnlyMesh(module);
    if (failed(meshOp))
      return failure();
    mesh = meshOp->getMesh();
    name = meshOp->getSymName();
  }
  LocalLayouts layouts(ProgramLayouts(module, MeshAxes(mesh)));
  layouts.meshName = FlatSymbolRefAttr::get(module.getContext(), name);
  if (failed(layouts.checkEdges()))
    return failure();
  return layouts;
}

const TensorLayout &LocalLayouts::of(ShardingAttr sharding) {
  auto [it, inserted] = parsed.try_emplace(sharding);
  if (inserted)
    it->second = TensorLayout::fromAttr(sharding, mesh());
  return it->second;
}

const TensorLayout &LocalLayouts::of(Value value) {
  if (ShardingAttr sharding = program.shardingOf(value))
    return of(sharding);
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  auto [it, inserted] = whole.try_emplace(rank);
  if (inserted)
    it->second = TensorLayout::replicated(rank);
  return it->second;
}

/// What joins values wants them split alike.
LogicalResult LocalLayouts::checkEdges() {
  for (const DataFlowEdge &edge : program.edges()) {
    ShardingAttr sharding = program.shardingOf(edge);
    for (OpOperand *source : edge.sources) {
      TensorLayout actual = of(source->get());
      TensorLayout wanted = sharding
                                ? of(sharding)
                                : TensorLayout::replicated(actual.dims.size());
      if (actual != wanted)
        return source->getOwner()->emitOpError()
               << "expected operand " << source->getOperandNumber()
               << " to be split as what it feeds, " << print(wanted)
               << ", but got " << print(actual)
               << "; run hypershard-insert-reshards first";
    }
    for (Value target : edge.targets)
      if (sharding && of(target) != of(sharding))
        return emitError(target.getLoc())
               << "expected values that control flow joins to be split alike "
                  "but got "
               << print(of(sharding)) << " and " << print(of(target));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// One op
//===----------------------------------------------------------------------===//

Value LocalProgram::axisIndex(ArrayRef<Axis> axes) {
  std::vector<std::tuple<uint32_t, int64_t, int64_t>> key;
  for (Axis axis : axes)
    key.emplace_back(axis.axis, axis.pre, axis.size);
  Value &index = indices[key];
  if (!index) {
    OpBuilder atEntry = OpBuilder::atBlockBegin(entry);
    index = AxisIndexOp::create(atEntry, entry->getParentOp()->getLoc(),
                                atEntry.getIndexType(), layouts.meshName,
                                axesAttr(axes));
  }
  return index;
}

namespace {
/// Answers what an op's partition() asks.
class OpContext : public PartitionContext {
public:
  OpContext(Operation *op, LocalProgram &program, ShardingRule rule,
            FactorAxes axes)
      : op(op), program(program), opRule(std::move(rule)),
        axes(std::move(axes)) {}

  OpBuilder &builder() override { return program.builder; }
  const ShardingRule &rule() const override { return opRule; }
  Value local(Value global) override { return program.local(global); }
  RankedTensorType localType(Value result) override {
    return program.layouts.localType(result);
  }
  void setResult(Value global, Value local) override {
    if (local.getType() != program.layouts.localTypeOf(global) && !isWrong) {
      isWrong = true;
      op->emitOpError() << "expected a local result of "
                        << program.layouts.localTypeOf(global) << " but got "
                        << local.getType();
    }
    // What a person or the front end wrote stays with the value.
    if (Operation *maker = local.getDefiningOp())
      for (NamedAttribute attr : op->getDiscardableAttrs())
        if (attr.getName().strref().starts_with("hp."))
          maker->setDiscardableAttr(attr.getName(), attr.getValue());
    program.mapping.map(global, local);
  }
  int64_t shardCount(unsigned factor) const override {
    return numShards(axes[factor]);
  }
  Value shardIndex(unsigned factor) override {
    return program.axisIndex(axes[factor]);
  }
  Value exchangeWindow(Value local, int64_t dim, unsigned factor,
                       int64_t globalSize, int64_t stride, int64_t lo,
                       int64_t size) override;

  bool hasWrongResult() const { return isWrong; }

private:
  Operation *op;
  LocalProgram &program;
  ShardingRule opRule;
  FactorAxes axes;
  bool isWrong = false;
};
} // namespace

Value OpContext::exchangeWindow(Value local, int64_t dim, unsigned factor,
                                int64_t globalSize, int64_t stride, int64_t lo,
                                int64_t size) {
  OpBuilder &b = program.builder;
  if (shardCount(factor) == 1)
    return windowDim(b, op->getLoc(), local, dim, lo, size);
  auto type = cast<RankedTensorType>(local.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  return HaloExchangeOp::create(
      b, op->getLoc(), type.clone(shape), local, program.layouts.meshName,
      program.axesAttr(axes[factor]), number(dim), number(globalSize),
      number(stride), number(lo), number(size));
}

/// Says how the tensors of an op are split that do not fit together.
static LogicalResult reportMisfit(Operation *op, const ShardingRule &rule,
                                  LocalLayouts &layouts) {
  InFlightDiagnostic diag =
      op->emitOpError("expected operands and results to be split as its rule "
                      "allows, with every reshard inserted");
  std::string text;
  llvm::raw_string_ostream os(text);
  rule.print(os);
  diag.attachNote() << "the rule is " << text;
  for (const RuleTensor &operand : rule.operands)
    diag.attachNote(operand.value.getLoc())
        << "an operand is " << layouts.print(layouts.of(operand.value));
  for (const RuleTensor &result : rule.results)
    diag.attachNote() << "a result is "
                      << layouts.print(layouts.of(result.value));
  diag.attachNote() << "run hypershard-insert-reshards and "
                       "hypershard-lower-reshards first";
  return failure();
}

LogicalResult hypershard::partitionOp(Operation *op, LocalProgram &program) {
  ShardingRule rule = hyperparallel::getShardingRule(op);
  std::optional<FactorAxes> axes = inferFactorAxes(
      rule, [&](Value value) { return program.layouts.of(value); });
  if (!axes)
    return reportMisfit(op, rule, program.layouts);
  OpContext context(op, program, std::move(rule), std::move(*axes));
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  LogicalResult result =
      shardable ? shardable.partition(context) : partitionSameDims(op, context);
  return failure(failed(result) || context.hasWrongResult());
}
