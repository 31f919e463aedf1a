//===- Pipelines.h - the phases, in order -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PIPELINES_PIPELINES_H
#define HYPERPARALLEL_LIB_PIPELINES_PIPELINES_H

namespace mlir::hyperparallel {

/// Registers a pipeline per phase and `hp-shard`, which is phases 0 to 5 on a
/// program that carries its annotations.
void registerPhasePipelines();

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_PIPELINES_PIPELINES_H
