//===- SplitChoices.h - the ways in which an op may be split ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A way gives each factor of an op's rule the axes that split it, no axis
// twice. Ways are suggested by the layouts of the op's tensors; their costs are
// seconds.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_SPLITCHOICES_H
#define HYPERPARALLEL_LIB_ANALYSIS_SPLITCHOICES_H

#include "lib/Analysis/FactorSharding.h"
#include "lib/Analysis/ProgramLayouts.h"
#include "lib/Analysis/ReshardPath.h"

namespace mlir::hyperparallel {

/// Is the value made of nothing but constants and indices, for this one use?
/// Then it may as well be made with another layout: that is free.
bool isFreeToSplit(Value value);

/// What an op does on one device: arithmetic operations, whether they contract
/// (run at the rate of matrix units), bytes read and written.
struct LocalWork {
  double flops = 0;
  bool isContraction = false;
  double bytes = 0;
};
/// Seconds of an op on one device.
using KernelSeconds = function_ref<double(const LocalWork &)>;

/// On a current accelerator (1e14 flops and 1e12 bytes a second): what is
/// assumed when the module describes no machine.
double assumedKernelSeconds(const LocalWork &work);

struct SplitCost {
  /// Of the way in SplitChoices::ways().
  unsigned index = 0;
  /// Received per device by the reshards that the way needs.
  int64_t bytes = 0;
  double seconds = 0;
  /// Of the best way that was refused; infinite if there is no other.
  double nextSeconds = 0;
};

class SplitChoices {
public:
  SplitChoices(const ShardingRule &rule, const ProgramLayouts &layouts);

  /// Different from each other, in the order of suggestion; at least one.
  ArrayRef<FactorAxes> ways() const { return distinctWays; }
  /// The way of least seconds; the first of equals.
  SplitCost cheapest(ReshardPlanner &planner,
                     KernelSeconds kernelSeconds) const;

private:
  void suggest(const RuleTensor &first);
  void add(FactorAxes axes);
  SplitCost costOf(unsigned way, ReshardPlanner &planner,
                   KernelSeconds kernelSeconds) const;

  const ShardingRule &rule;
  /// Layouts of operands, then results.
  SmallVector<std::pair<const RuleTensor *, TensorLayout>, 4> tensors;
  unsigned numOperands;
  SmallVector<FactorAxes, 2> distinctWays;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_SPLITCHOICES_H
