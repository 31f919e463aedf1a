//===- PropagationGraph.cpp - values, and what relates them ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Analysis/PropagationGraph.h"

#include "dialects/Interfaces/CostOpInterface.h"
#include "lib/Analysis/StateUpdates.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

unsigned PropagationGraph::addValue(RankedTensorType type,
                                    ShardingAttr sharding) {
  ValueState state;
  state.type = type;
  state.bytes = byteSize(type);
  state.dims.resize(type.getRank());
  if (sharding) {
    for (auto [dim, attr, size] :
         llvm::zip_equal(state.dims, sharding.getDims(), type.getShape())) {
      // There is nothing to split in a dimension of size 0 or 1.
      if (size > 1)
        dim.axes = mergeAxes(mesh.fromAttrs(attr.getAxes()));
      dim.isOpen = attr.getIsOpen();
      dim.priority = attr.getPriority();
    }
    state.blocked = mesh.fromAttrs(sharding.getReplicated());
    state.partial = sharding.getPartial();
    if (state.partial)
      state.blocked.append(mesh.fromAttrs(state.partial.getAxes()));
  }
  values.push_back(std::move(state));
  users.emplace_back();
  return values.size() - 1;
}

FailureOr<unsigned> PropagationGraph::valueOf(Value value) {
  auto [it, inserted] = ids.try_emplace(value, 0);
  if (!inserted)
    return it->second;
  auto type = cast<RankedTensorType>(value.getType());
  if (!type.hasStaticShape())
    return emitError(value.getLoc())
           << "expected static shapes to propagate shardings but got " << type;
  // Shardings that are asked of a value inside the program.
  ShardingAttr sharding = hypershard::getSharding(value);
  if (auto constraint = value.getDefiningOp<ConstraintOp>())
    sharding = constraint.getSharding();
  if (auto reshard = value.getDefiningOp<ReshardOp>())
    sharding = reshard.getSharding();
  if (auto manual = value.getDefiningOp<ManualOp>())
    sharding = cast<ShardingAttr>(
        manual.getOutShardings()[cast<OpResult>(value).getResultNumber()]);
  it->second = addValue(type, sharding);
  tensors.push_back({value, it->second});
  return it->second;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void PropagationGraph::addNode(PropagationNode node) {
  unsigned id = nodes.size();
  for (const NodeTensor &tensor : node.tensors)
    if (users[tensor.value].empty() || users[tensor.value].back() != id)
      users[tensor.value].push_back(id);
  nodes.push_back(std::move(node));
}

/// All tensors of the same dimensions, one factor each.
static SmallVector<Factor, 4>
oneFactorPerDim(RankedTensorType type,
                SmallVector<SmallVector<unsigned, 2>, 4> &dims) {
  SmallVector<Factor, 4> factors;
  for (int64_t size : type.getShape()) {
    auto &dim = dims.emplace_back();
    if (size == 1)
      continue;
    dim.push_back(factors.size());
    factors.push_back({size, FactorKind::PassThrough});
  }
  return factors;
}

LogicalResult PropagationGraph::addFunctionResults(ModuleOp module) {
  for (auto function : module.getOps<FunctionOpInterface>())
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto type = dyn_cast<RankedTensorType>(function.getResultTypes()[i]);
      if (!type)
        continue;
      if (!type.hasStaticShape())
        return function.emitError()
               << "expected static shapes to propagate shardings but result "
               << i << " is " << type;
      resultIds[{function, i}] =
          addValue(type, function.getResultAttrOfType<ShardingAttr>(
                             i, HyperShardDialect::kShardingAttrName));
    }
  return success();
}

/// Ops whose results and operands are tied by edges, not by a rule.
static bool isTiedByEdges(Operation *op) {
  return isa<RegionBranchOpInterface, CallOpInterface, FunctionOpInterface,
             ManualOp>(op) ||
         op->hasTrait<OpTrait::IsTerminator>();
}

LogicalResult PropagationGraph::addOps(ModuleOp module) {
  LogicalResult status = success();
  walkTensorOps(module, [&](Operation *op) {
    // Arguments are values even when nothing reads them: they get shardings.
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      for (Value argument : function.getArguments())
        if (isa<RankedTensorType>(argument.getType()) &&
            failed(valueOf(argument)))
          status = failure();
    bool hasTensors = false;
    for (Value result : op->getResults())
      if (isa<RankedTensorType>(result.getType())) {
        hasTensors = true;
        if (failed(valueOf(result)))
          status = failure();
      }
    if (failed(status) || isTiedByEdges(op))
      return;
    hasTensors |= llvm::any_of(op->getOperandTypes(), [](Type type) {
      return isa<RankedTensorType>(type);
    });
    if (!hasTensors)
      return;
    PropagationNode node;
    node.op = op;
    if (isa<ConstraintOp, ReshardOp, BarrierOp>(op)) {
      SmallVector<SmallVector<unsigned, 2>, 4> dims;
      node.factors = oneFactorPerDim(
          cast<RankedTensorType>(op->getResult(0).getType()), dims);
      node.isElementwise = true;
      for (Value value : {op->getOperand(0), Value(op->getResult(0))}) {
        FailureOr<unsigned> id = valueOf(value);
        if (failed(id))
          return void(status = failure());
        node.tensors.push_back({*id, dims});
      }
      if (auto barrier = dyn_cast<BarrierOp>(op)) {
        bool forward = barrier.getDirection() == Direction::Forward;
        bool backward = barrier.getDirection() == Direction::Backward;
        node.tensors[0].isSource = node.tensors[1].isTarget = forward;
        node.tensors[1].isSource = node.tensors[0].isTarget = backward;
      }
    } else {
      ShardingRule rule = getShardingRule(op);
      node.isElementwise = rule.isElementwise();
      node.factors.append(rule.factors.begin(), rule.factors.end());
      for (auto *side : {&rule.operands, &rule.results})
        for (RuleTensor &tensor : *side) {
          FailureOr<unsigned> id = valueOf(tensor.value);
          if (failed(id))
            return void(status = failure());
          node.tensors.push_back({*id, std::move(tensor.dims)});
        }
    }
    addNode(std::move(node));
  });
  return status;
}

LogicalResult PropagationGraph::addEdges(ModuleOp module) {
  edges = collectDataFlowEdges(module);
  for (const DataFlowEdge &edge : edges) {
    SmallVector<unsigned> ends;
    auto add = [&](Value value) {
      FailureOr<unsigned> id = valueOf(value);
      if (succeeded(id))
        ends.push_back(*id);
      return succeeded(id);
    };
    for (OpOperand *source : edge.sources)
      if (!add(source->get()))
        return failure();
    if (edge.function)
      ends.push_back(resultIds[{edge.function, edge.functionResult}]);
    for (Value target : edge.targets)
      if (!add(target))
        return failure();
    if (ends.size() < 2)
      continue;
    PropagationNode node;
    node.op =
        edge.sources.empty() ? edge.function : edge.sources.front()->getOwner();
    node.isElementwise = true;
    SmallVector<SmallVector<unsigned, 2>, 4> dims;
    node.factors = oneFactorPerDim(values[ends.front()].type, dims);
    for (unsigned end : ends)
      node.tensors.push_back({end, dims});
    addNode(std::move(node));
  }
  return success();
}

FailureOr<PropagationGraph> PropagationGraph::build(ModuleOp module,
                                                    MeshOp mesh) {
  PropagationGraph graph(mesh);
  graph.module = module;
  if (failed(graph.addFunctionResults(module)) ||
      failed(graph.addOps(module)) || failed(graph.addEdges(module)))
    return failure();
  return graph;
}

//===----------------------------------------------------------------------===//
// The result
//===----------------------------------------------------------------------===//

ShardingAttr PropagationGraph::shardingOf(unsigned value) const {
  const ValueState &state = values[value];
  MLIRContext *context = meshName.getContext();
  SmallVector<DimShardingAttr> dims;
  for (const DimState &dim : state.dims)
    dims.push_back(DimShardingAttr::get(
        context, mesh.toAttrs(mergeAxes(dim.axes)), false, 0));
  return ShardingAttr::get(context, meshName, dims, {}, state.partial);
}

/// Loop-carried values that no result of the loop shares have nowhere to hang
/// their sharding: their init is constrained to it, which says it (see
/// ProgramLayouts).
void PropagationGraph::writeEdgesWithoutHome() {
  for (const DataFlowEdge &edge : edges) {
    bool hasHome =
        edge.function || llvm::any_of(edge.targets, [](Value target) {
          auto argument = dyn_cast<BlockArgument>(target);
          return !argument ||
                 isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
        });
    if (hasHome || edge.sources.empty() || edge.targets.empty())
      continue;
    ShardingAttr sharding = shardingOf(ids[edge.targets.front()]);
    OpOperand *init = edge.sources.front();
    if (shardingOf(ids[init->get()]) == sharding)
      continue;
    OpBuilder builder(init->getOwner());
    auto constraint = ConstraintOp::create(builder, init->getOwner()->getLoc(),
                                           init->get(), sharding);
    hypershard::setSharding(constraint, sharding);
    init->set(constraint);
  }
}

void PropagationGraph::writeShardings() {
  for (auto [value, id] : tensors) {
    if (isa<BlockArgument>(value))
      continue;
    auto result = cast<OpResult>(value);
    Operation *op = result.getOwner();
    // All results at once, when the first tensor among them is met.
    auto isTensor = [](Value v) { return isa<RankedTensorType>(v.getType()); };
    if (*llvm::find_if(op->getResults(), isTensor) != value)
      continue;
    SmallVector<ShardingAttr> shardings;
    for (Value each : op->getResults())
      shardings.push_back(isTensor(each) ? shardingOf(ids[each])
                                         : ShardingAttr());
    hypershard::setResultShardings(op, shardings);
  }
  // Of each function at once (see withSharding).
  module.walk([&](FunctionOpInterface function) {
    if (function.isExternal())
      return;
    SmallVector<DictionaryAttr> attrs;
    bool isChanged = false;
    for (BlockArgument argument : function.getArguments()) {
      attrs.push_back(function.getArgAttrDict(argument.getArgNumber()));
      auto it = ids.find(argument);
      if (it == ids.end())
        continue;
      attrs.back() =
          hypershard::withSharding(attrs.back(), shardingOf(it->second));
      isChanged = true;
    }
    if (isChanged)
      function.setAllArgAttrs(attrs);
  });
  for (auto function : module.getOps<FunctionOpInterface>()) {
    SmallVector<DictionaryAttr> attrs;
    SmallVector<std::optional<unsigned>> updated(function.getNumResults());
    if (!function.isExternal())
      updated = getUpdatedArguments(function);
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      attrs.push_back(function.getResultAttrDict(i));
      auto it = resultIds.find({function, i});
      if (it == resultIds.end())
        continue;
      // What is updated stays as it is laid out.
      unsigned id =
          updated[i] ? ids[function.getArgument(*updated[i])] : it->second;
      attrs.back() = hypershard::withSharding(attrs.back(), shardingOf(id));
    }
    if (!attrs.empty())
      function.setAllResultAttrs(attrs);
  }
  writeEdgesWithoutHome();
}
