//===- FactorSharding.h - axes of factors and axes of tensors ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A tensor's layout says which axes split each dimension; an op's sharding rule
// says of which factors each dimension is made. `project` carries a layout to
// the factors and `unproject` back. A dimension of several factors (a reshape)
// gives its axes to the factors major to minor: the next factor gets some only
// when the one before is split down to single iterations.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_FACTORSHARDING_H
#define HYPERPARALLEL_LIB_ANALYSIS_FACTORSHARDING_H

#include "dialects/Interfaces/ShardableOpInterface.h"
#include "lib/Analysis/TensorLayout.h"

namespace mlir::hyperparallel {

/// Per factor of a rule, the axes that split it, major to minor.
using FactorAxes = SmallVector<hypershard::AxisList, 6>;

/// The rule of an op: what it says itself, or for an elementwise op on tensors
/// one factor per dimension, or else that all its tensors must be whole.
ShardingRule getShardingRule(Operation *op);

/// The axes that `layout` puts on each factor of the tensor. False in `exact`
/// (if given) when some axes could not be given to a factor.
FactorAxes project(const ShardingRule &rule, const RuleTensor &tensor,
                   ArrayRef<hypershard::AxisList> dims, bool *exact = nullptr);

/// The layout of a tensor when its op's factors are split so. Axes that cannot
/// be written (a minor factor is split, its major one not entirely) are left
/// out, and `exact` becomes false. Reduction factors that the tensor lacks do
/// not make it partial: see `unprojectResult`.
TensorLayout unproject(const ShardingRule &rule, const RuleTensor &tensor,
                       const FactorAxes &axes, bool *exact = nullptr);

/// As `unproject`, for a result: partial over the axes of reduction factors.
TensorLayout unprojectResult(const ShardingRule &rule, const RuleTensor &result,
                             const FactorAxes &axes, bool *exact = nullptr);

/// The factor axes under which every operand and result has the layout that
/// `layoutOf` gives; nullopt if there are none, which means that the program is
/// not resharded. The proof that an op can be partitioned.
std::optional<FactorAxes>
inferFactorAxes(const ShardingRule &rule,
                function_ref<TensorLayout(Value)> layoutOf);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_FACTORSHARDING_H
