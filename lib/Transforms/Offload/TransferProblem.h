//===- TransferProblem.h - a function as the planner sees it ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_OFFLOAD_TRANSFERPROBLEM_H
#define HYPERPARALLEL_LIB_TRANSFORMS_OFFLOAD_TRANSFERPROBLEM_H

#include "dialects/Offload/Offload.h"
#include "lib/Analysis/Storages.h"
#include "lib/Planner/Plan.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::hyperparallel::offload {

/// A function of one block as a planner's problem: operation i is op i of the
/// block, storage i is storage i of `storages` (those of results that are
/// copied follow).
struct TransferProblem {
  TransferProblem(FunctionOpInterface function, CostModel &model,
                  int64_t capacity);

  /// Fails, with an error, if what a person asked for makes no sense on the
  /// machine.
  LogicalResult build();

  FunctionOpInterface function;
  CostModel &model;
  Storages storages;
  planner::Problem problem;
  /// Names of the problem's tiers.
  SmallVector<TierAttr> tiers;
  /// By storage: the tier in which it has to live between steps.
  SmallVector<std::optional<uint32_t>> places;

  /// What to call the storage in messages: `hp.name` of an argument, or the op
  /// that makes it.
  std::string getName(uint32_t storage) const;
  /// What to call the op at a position, or the end of the step.
  std::string getOpName(int64_t position) const;
  /// The value of the storage that op `before` and later ones use.
  Value getValueAt(uint32_t storage, int64_t after) const;

private:
  /// Arguments that have another value in the next step.
  llvm::SmallDenseSet<unsigned> updated;

  int32_t getSegment(supernode::LinkAttr link, int64_t devices);
  void addTiers();
  void addOperations();
  LogicalResult addStorages();
  LogicalResult addArgument(uint32_t number, uint32_t storage);
  LogicalResult addStreamed(uint32_t storage);
  void addRecomputation(uint32_t storage);
  bool hasOneValue(uint32_t storage) const;

  /// By callee: whether calling it again does nothing but give the same.
  DenseMap<Attribute, bool> recomputable;

  /// Numbers of the problem's segments.
  llvm::StringMap<int32_t> segments;
};

} // namespace mlir::hyperparallel::offload

#endif // HYPERPARALLEL_LIB_TRANSFORMS_OFFLOAD_TRANSFERPROBLEM_H
