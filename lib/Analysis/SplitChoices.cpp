//===- SplitChoices.cpp - the ways in which an op may be split ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// One way per tensor of the op: that tensor's axes first, then what the others
// (larger ones first) add on factors that are still free or continue what is
// there, with axes that are not in use. From each way with split reduction
// factors, another without: gathering the operands may be cheaper than reducing
// the result. Most ops have one way.
//
// The op itself costs its seconds on local shapes, with 2 flops an iteration
// when something is reduced and 1 otherwise: so that computing the same thing
// on every device is not free.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/SplitChoices.h"

#include "dialects/Interfaces/CostOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <limits>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

/// Longer chains are not followed: they are not what constants look like.
static constexpr unsigned kMaxChain = 8;

static bool isFree(Value value, unsigned maxChain) {
  Operation *op = value.getDefiningOp();
  if (maxChain == 0 || !op || op->getNumResults() != 1 || !value.hasOneUse() ||
      !isPure(op))
    return false;
  ShardingRule rule = getShardingRule(op);
  // Reshapes cannot be made with just any layout.
  auto isSimple = [](const RuleTensor &tensor) {
    return llvm::all_of(tensor.dims, [](ArrayRef<unsigned> factors) {
      return factors.size() <= 1;
    });
  };
  return rule.results.size() == 1 && isSimple(rule.results.front()) &&
         llvm::all_of(rule.factors,
                      [](const Factor &factor) {
                        return factor.kind == FactorKind::PassThrough;
                      }) &&
         llvm::all_of(rule.operands, [&](const RuleTensor &operand) {
           return isSimple(operand) && isFree(operand.value, maxChain - 1);
         });
}

bool mlir::hyperparallel::isFreeToSplit(Value value) {
  return isFree(value, kMaxChain);
}

double mlir::hyperparallel::assumedKernelSeconds(const LocalWork &work) {
  return std::max(work.flops / 1e14, work.bytes / 1e12);
}

SplitChoices::SplitChoices(const ShardingRule &rule,
                           const ProgramLayouts &layouts)
    : rule(rule), numOperands(rule.operands.size()) {
  for (const RuleTensor &operand : rule.operands)
    tensors.push_back({&operand, layouts.layoutOf(operand.value)});
  for (const RuleTensor &result : rule.results)
    tensors.push_back({&result, layouts.layoutOf(result.value)});
  for (auto &[tensor, layout] : tensors)
    if (tensor->isRead)
      suggest(*tensor);
  if (distinctWays.empty())
    add(FactorAxes(rule.factors.size()));
}

void SplitChoices::add(FactorAxes axes) {
  if (!llvm::is_contained(distinctWays, axes))
    distinctWays.push_back(std::move(axes));
}

/// Is a split of the tensors by these axes what the layouts can express?
static bool isExact(const ShardingRule &rule, const FactorAxes &axes) {
  bool exact = true;
  for (const RuleTensor &operand : rule.operands)
    unproject(rule, operand, axes, &exact);
  for (const RuleTensor &result : rule.results)
    unprojectResult(rule, result, axes, &exact);
  return exact;
}

void SplitChoices::suggest(const RuleTensor &first) {
  SmallVector<unsigned> order;
  for (unsigned i = 0; i < tensors.size(); ++i)
    order.push_back(i);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) {
    auto key = [&](unsigned i) {
      return std::make_pair(tensors[i].first != &first,
                            -byteSize(tensors[i].first->value.getType()));
    };
    return key(a) < key(b);
  });
  FactorAxes axes(rule.factors.size());
  AxisList used;
  for (unsigned index : order) {
    FactorAxes wanted =
        project(rule, *tensors[index].first, tensors[index].second.dims);
    for (auto [factor, list] : llvm::enumerate(wanted)) {
      if (list.empty() ||
          rule.factors[factor].kind == FactorKind::NeedReplication)
        continue;
      std::optional<AxisList> more = removePrefix(list, axes[factor]);
      if (!more || more->empty())
        continue;
      AxisList fits = prefixWithoutOverlap(*more, used);
      if (fits.empty())
        continue;
      FactorAxes extended = axes;
      extended[factor].append(fits);
      extended[factor] = mergeAxes(extended[factor]);
      if (!isExact(rule, extended))
        continue;
      axes = std::move(extended);
      used.append(fits);
    }
  }
  FactorAxes withoutReductions = axes;
  for (auto [factor, list] : llvm::zip_equal(rule.factors, withoutReductions))
    if (factor.kind == FactorKind::Reduction)
      list.clear();
  add(std::move(axes));
  add(std::move(withoutReductions));
}

SplitCost SplitChoices::costOf(unsigned way, ReshardPlanner &planner,
                               KernelSeconds kernelSeconds) const {
  const FactorAxes &axes = distinctWays[way];
  SplitCost cost;
  cost.index = way;
  LocalWork work;
  work.flops = 1;
  for (auto [factor, list] : llvm::zip_equal(rule.factors, axes)) {
    if (!factor.isLoop)
      continue;
    work.flops *= blockSize(factor.size, numShards(list));
    work.isContraction |= factor.kind == FactorKind::Reduction;
  }
  for (auto [index, entry] : llvm::enumerate(tensors)) {
    auto &[tensor, layout] = entry;
    auto type = cast<RankedTensorType>(tensor->value.getType());
    bool isOperand = index < numOperands;
    TensorLayout needed = isOperand ? unproject(rule, *tensor, axes)
                                    : unprojectResult(rule, *tensor, axes);
    work.bytes += needed.localBytes(type);
    if (needed == layout || !tensor->isRead ||
        (isOperand && isFreeToSplit(tensor->value)))
      continue;
    const ReshardPlan &plan = isOperand ? planner.plan(type, layout, needed)
                                        : planner.plan(type, needed, layout);
    cost.bytes += plan.bytes;
    cost.seconds += plan.isPossible() ? plan.seconds
                                      : std::numeric_limits<double>::infinity();
  }
  work.flops *= work.isContraction ? 2 : 1;
  cost.seconds += kernelSeconds(work);
  return cost;
}

SplitCost SplitChoices::cheapest(ReshardPlanner &planner,
                                 KernelSeconds kernelSeconds) const {
  SplitCost best;
  best.nextSeconds = std::numeric_limits<double>::infinity();
  if (distinctWays.size() == 1)
    return best;
  best = costOf(0, planner, kernelSeconds);
  double next = std::numeric_limits<double>::infinity();
  for (unsigned way = 1; way < distinctWays.size(); ++way) {
    SplitCost cost = costOf(way, planner, kernelSeconds);
    if (cost.seconds < best.seconds) {
      next = best.seconds;
      best = cost;
    } else {
      next = std::min(next, cost.seconds);
    }
  }
  best.nextSeconds = next;
  return best;
}
