//===- ShardingRule.h - how the dimensions of an op relate ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A sharding rule names the *factors* of an op: loops that could be split over
// devices. Every dimension of every operand and result is a list of factors,
// major to minor. Two dimensions that share a factor must be split alike, and
// what may happen when a factor is split is the factor's kind.
//
//   matmul  ([i,k],[k,j],[i,j]) -> [i,j]    k: reduction<sum>
//   reshape 8 -> 2x4  ([i,j]) -> [i],[j]     one dimension of two factors
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_INTERFACES_SHARDINGRULE_H
#define HYPERPARALLEL_DIALECTS_INTERFACES_SHARDINGRULE_H

#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

#include "dialects/Interfaces/Reduction.h.inc"

namespace mlir::hyperparallel {

enum class FactorKind {
  /// Devices compute disjoint parts of the result; no communication.
  PassThrough,
  /// Not in the results: devices hold partial results, to be combined.
  Reduction,
  /// May not be split: the op needs all of it on every device.
  NeedReplication,
  /// May be split, but each device needs a window of the operand that is not
  /// its own block (slice, pad, concat, convolution): partition() exchanges it.
  Window,
};

struct Factor {
  /// Iterations of the loop; for a Window factor that of the result.
  int64_t size = 1;
  FactorKind kind = FactorKind::PassThrough;
  /// Combiner, for reduction factors.
  std::optional<Reduction> reduction = std::nullopt;
  /// Does the op iterate over it? Not over the rows that a gather picks from.
  bool isLoop = true;
};

/// The factors of one tensor that an op reads or makes.
struct RuleTensor {
  Value value;
  /// Where the op reads the value: its own operand, or the operands of ops in
  /// its regions (a tensor captured by the body). Empty for results.
  SmallVector<OpOperand *, 1> uses;
  /// Per dimension, factor indices major to minor. Empty: a size-1 dimension
  /// that takes part in nothing, always whole.
  SmallVector<SmallVector<unsigned, 2>, 4> dims;
  /// False for a destination whose content the op does not read.
  bool isRead = true;
};

struct ShardingRule {
  SmallVector<Factor, 6> factors;
  SmallVector<RuleTensor, 3> operands;
  SmallVector<RuleTensor, 3> results;
  /// The op of sums is the sum of the op: f(a + b, c + d) = f(a, c) + f(b, d).
  /// It may work on partial sums.
  bool isAdditive = false;

  unsigned addFactor(int64_t size, FactorKind kind = FactorKind::PassThrough,
                     std::optional<Reduction> reduction = std::nullopt) {
    factors.push_back({size, kind, reduction});
    return factors.size() - 1;
  }

  /// True if the op moves or maps elements one to one: no reduction factor, and
  /// every operand has the factors of the result.
  bool isElementwise() const;

  /// `([i, k], [k, j]) -> ([i, j]) {i=8, j=16, k=4 reduction<sum>}`.
  void print(raw_ostream &os) const;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_DIALECTS_INTERFACES_SHARDINGRULE_H
