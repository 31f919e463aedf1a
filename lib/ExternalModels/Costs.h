//===- Costs.h - costs and placement of foreign ops -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_EXTERNALMODELS_COSTS_H
#define HYPERPARALLEL_LIB_EXTERNALMODELS_COSTS_H

namespace mlir {
class DialectRegistry;
namespace hyperparallel {

/// Attaches CostOpInterface to linalg, tensor, arith, math and our own ops, and
/// what belongs to it (OffloadableOpInterface).
void registerCostModels(DialectRegistry &registry);

/// Attaches OffloadableOpInterface to linalg and tensor.
void registerOffloadableModels(DialectRegistry &registry);

void registerLinalgCosts(DialectRegistry &registry);
void registerTensorCosts(DialectRegistry &registry);
void registerArithCosts(DialectRegistry &registry);
void registerHyperShardCosts(DialectRegistry &registry);
void registerIndexingCosts(DialectRegistry &registry);

} // namespace hyperparallel
} // namespace mlir

#endif // HYPERPARALLEL_LIB_EXTERNALMODELS_COSTS_H
