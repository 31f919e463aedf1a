//===- FactorSharding.cpp - axes of factors and axes of tensors -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Analysis/FactorSharding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

//===----------------------------------------------------------------------===//
// Rules of ops that do not speak for themselves
//===----------------------------------------------------------------------===//

static RuleTensor wholeTensor(ShardingRule &rule, Value value) {
  RuleTensor tensor{value, {}, {}};
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape()) {
    auto &dim = tensor.dims.emplace_back();
    if (size != 1)
      dim.push_back(rule.addFactor(size, FactorKind::NeedReplication));
  }
  return tensor;
}

/// Unknown ops: every tensor in them whole, those that regions capture too.
static ShardingRule wholeRule(Operation *op) {
  ShardingRule rule;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    RuleTensor tensor = wholeTensor(rule, operand.get());
    tensor.uses.push_back(&operand);
    rule.operands.push_back(std::move(tensor));
  }
  for (Value result : op->getResults())
    if (isa<RankedTensorType>(result.getType()))
      rule.results.push_back(wholeTensor(rule, result));
  return rule;
}

static ShardingRule elementwiseRule(Operation *op) {
  ShardingRule rule;
  rule.isAdditive = isa<arith::AddFOp, arith::AddIOp, arith::SubFOp,
                        arith::SubIOp, arith::NegFOp>(op);
  auto shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  SmallVector<SmallVector<unsigned, 2>, 4> dims;
  for (int64_t size : shape) {
    auto &dim = dims.emplace_back();
    if (size != 1)
      dim.push_back(rule.addFactor(size));
  }
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()))
      rule.operands.push_back({operand.get(), {&operand}, dims});
  for (Value result : op->getResults())
    rule.results.push_back({result, {}, dims});
  return rule;
}

ShardingRule mlir::hyperparallel::getShardingRule(Operation *op) {
  if (auto shardable = dyn_cast<ShardableOpInterface>(op))
    return shardable.getShardingRule();
  if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() > 0 &&
      llvm::all_of(op->getResultTypes(),
                   [](Type type) { return isa<RankedTensorType>(type); }))
    return elementwiseRule(op);
  return wholeRule(op);
}

//===----------------------------------------------------------------------===//
// Between tensors and factors
//===----------------------------------------------------------------------===//

FactorAxes mlir::hyperparallel::project(const ShardingRule &rule,
                                        const RuleTensor &tensor,
                                        ArrayRef<AxisList> dims, bool *exact) {
  FactorAxes axes(rule.factors.size());
  for (auto [factors, dimAxes] : llvm::zip_equal(tensor.dims, dims)) {
    AxisList rest = dimAxes;
    for (unsigned factor : factors) {
      if (rest.empty())
        break;
      // A dimension of one factor takes all, even or not. In one of several,
      // blocks of a factor that does not divide would not be blocks of the
      // dimension.
      if (factors.size() == 1) {
        axes[factor] = std::exchange(rest, {});
        break;
      }
      int64_t size = rule.factors[factor].size;
      if (numShards(rest) <= size && size % numShards(rest) == 0) {
        axes[factor] = std::exchange(rest, {});
        break;
      }
      auto parts = hypershard::splitAxes(rest, size);
      if (!parts)
        break;
      axes[factor] = mergeAxes(parts->first);
      rest = mergeAxes(parts->second);
    }
    if (!rest.empty() && exact)
      *exact = false;
  }
  return axes;
}

TensorLayout mlir::hyperparallel::unproject(const ShardingRule &rule,
                                            const RuleTensor &tensor,
                                            const FactorAxes &axes,
                                            bool *exact) {
  TensorLayout layout;
  for (ArrayRef<unsigned> factors : tensor.dims) {
    AxisList dim;
    bool blocked = false;
    for (unsigned factor : factors) {
      if (blocked) {
        if (!axes[factor].empty() && exact)
          *exact = false;
        continue;
      }
      int64_t shards = numShards(axes[factor]);
      if (factors.size() > 1 && rule.factors[factor].size % shards != 0) {
        blocked = true;
        if (exact)
          *exact = false;
        continue;
      }
      dim.append(axes[factor]);
      blocked = shards != rule.factors[factor].size;
    }
    layout.dims.push_back(mergeAxes(dim));
  }
  return layout;
}

TensorLayout mlir::hyperparallel::unprojectResult(const ShardingRule &rule,
                                                  const RuleTensor &result,
                                                  const FactorAxes &axes,
                                                  bool *exact) {
  TensorLayout layout = unproject(rule, result, axes, exact);
  AxisList partial;
  Reduction kind = Reduction::Sum;
  for (auto [factor, factorAxes] : llvm::zip_equal(rule.factors, axes)) {
    if (factor.kind != FactorKind::Reduction || factorAxes.empty())
      continue;
    if (!partial.empty() && kind != *factor.reduction && exact)
      *exact = false;
    kind = *factor.reduction;
    partial.append(factorAxes);
  }
  layout.setPartial(kind, partial);
  return layout;
}

/// The axes over which everything that an additive op reads is a partial sum.
static AxisList commonPartialSum(const ShardingRule &rule,
                                 function_ref<TensorLayout(Value)> layoutOf) {
  std::optional<AxisList> common;
  if (!rule.isAdditive)
    return {};
  for (const RuleTensor &operand : rule.operands) {
    if (!operand.isRead)
      continue;
    TensorLayout layout = layoutOf(operand.value);
    if ((!layout.partial.empty() && layout.kind != Reduction::Sum) ||
        (common && *common != layout.partial))
      return {};
    common = layout.partial;
  }
  return common.value_or(AxisList());
}

std::optional<FactorAxes> mlir::hyperparallel::inferFactorAxes(
    const ShardingRule &rule, function_ref<TensorLayout(Value)> layoutOf) {
  AxisList partialSum = commonPartialSum(rule, layoutOf);
  FactorAxes merged(rule.factors.size());
  SmallVector<bool> known(rule.factors.size(), false);
  bool exact = true;
  auto collect = [&](const RuleTensor &tensor) {
    FactorAxes axes =
        project(rule, tensor, layoutOf(tensor.value).dims, &exact);
    for (ArrayRef<unsigned> factors : tensor.dims)
      for (unsigned factor : factors) {
        if (known[factor] && merged[factor] != axes[factor])
          exact = false;
        known[factor] = true;
        merged[factor] = axes[factor];
      }
  };
  llvm::for_each(rule.operands, collect);
  llvm::for_each(rule.results, collect);
  for (auto [factor, axes] : llvm::zip_equal(rule.factors, merged))
    if (factor.kind == FactorKind::NeedReplication && !axes.empty())
      exact = false;
  auto isAs = [&](TensorLayout made, Value value, bool mayBePartial) {
    if (!partialSum.empty() && mayBePartial) {
      AxisList partial = made.partial;
      partial.append(partialSum);
      made.setPartial(Reduction::Sum, partial);
    }
    return made == layoutOf(value);
  };
  for (const RuleTensor &result : rule.results)
    if (!isAs(unprojectResult(rule, result, merged, &exact), result.value,
              /*mayBePartial=*/true))
      exact = false;
  for (const RuleTensor &operand : rule.operands)
    if (!isAs(unproject(rule, operand, merged, &exact), operand.value,
              operand.isRead))
      exact = false;
  if (!exact)
    return std::nullopt;
  return merged;
}
